"""The part of the controller-manager and of the kubelet: what becomes of the objects that users write."""
