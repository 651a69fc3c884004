"""`memcached-operator check`: can the operator work on this cluster, and what is to be done where it cannot?"""
