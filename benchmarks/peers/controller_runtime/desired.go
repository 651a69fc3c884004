package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	defaultImage  = "docker.io/library/memcached:1.6.45-alpine"
	instanceLabel = "memcached_cr"
	memcachedUser = int64(11211)
)

func selectorLabels(name string) map[string]string {
	return map[string]string{"app": "memcached", instanceLabel: name}
}

func size(m *Memcached) int32 { return ptr.Deref(m.Spec.Size, 1) }

// ownedMeta is the metadata of what a Memcached owns, its owner reference included.
func ownedMeta(m *Memcached) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:       m.Namespace,
		Name:            m.Name,
		Labels:          allLabels(m.Name),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(m, groupVersion.WithKind("Memcached"))},
	}
}

func allLabels(name string) map[string]string {
	labels := selectorLabels(name)
	labels["app.kubernetes.io/component"] = "cache"
	labels["app.kubernetes.io/name"] = "memcached"
	labels["app.kubernetes.io/instance"] = name
	labels["app.kubernetes.io/managed-by"] = "memcached-operator"
	return labels
}

// desiredDeployment is the Deployment that a Memcached wants.
func desiredDeployment(m *Memcached) *appsv1.Deployment {
	image := m.Spec.Image
	if image == "" {
		image = defaultImage
	}
	return &appsv1.Deployment{
		ObjectMeta: ownedMeta(m),
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(size(m)),
			Selector: &metav1.LabelSelector{MatchLabels: selectorLabels(m.Name)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: allLabels(m.Name)},
				Spec: corev1.PodSpec{
					AutomountServiceAccountToken: ptr.To(false),
					SecurityContext: &corev1.PodSecurityContext{
						RunAsNonRoot:   ptr.To(true),
						RunAsUser:      ptr.To(memcachedUser),
						RunAsGroup:     ptr.To(memcachedUser),
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
					Containers: []corev1.Container{{
						Name:    "memcached",
						Image:   image,
						Command: []string{"memcached", "-m", "64", "-o", "modern", "-v"},
						Ports: []corev1.ContainerPort{{
							Name:          "memcached",
							ContainerPort: 11211,
							Protocol:      corev1.ProtocolTCP,
						}},
						SecurityContext: &corev1.SecurityContext{
							AllowPrivilegeEscalation: ptr.To(false),
							ReadOnlyRootFilesystem:   ptr.To(true),
							Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
						},
					}},
				},
			},
		},
	}
}
