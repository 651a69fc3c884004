package main

import (
	_ "embed"
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const instanceLabel = "memcached_cr"

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

// What all Deployments have in common: as memcached-operator makes them, which a test holds.
//
//go:embed deployment.json
var commonJSON []byte

var common = func() *appsv1.Deployment {
	var deployment appsv1.Deployment
	if err := json.Unmarshal(commonJSON, &deployment); err != nil {
		panic(err)
	}
	// The API server's default: DeepDerivative takes a number that is left out for 0.
	deployment.Spec.Template.Spec.Containers[0].ReadinessProbe.SuccessThreshold = 1
	return &deployment
}()

// desiredDeployment is the Deployment that a Memcached wants.
func desiredDeployment(m *Memcached) *appsv1.Deployment {
	deployment := common.DeepCopy()
	deployment.ObjectMeta = ownedMeta(m)
	deployment.Spec.Replicas = ptr.To(size(m))
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: selectorLabels(m.Name)}
	deployment.Spec.Template.Labels = allLabels(m.Name)
	if m.Spec.Image != "" {
		deployment.Spec.Template.Spec.Containers[0].Image = m.Spec.Image
	}
	return deployment
}
