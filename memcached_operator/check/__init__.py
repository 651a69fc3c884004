"""`memcached-operator check`: can the operator work on this cluster, and what is missing where it cannot?"""
