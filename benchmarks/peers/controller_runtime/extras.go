package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const memcachedPort = 11211

// desiredService is the headless Service of a Memcached.
func desiredService(m *Memcached) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: ownedMeta(m),
		Spec: corev1.ServiceSpec{
			Type:      corev1.ServiceTypeClusterIP,
			ClusterIP: corev1.ClusterIPNone,
			Selector:  selectorLabels(m.Name),
			Ports: []corev1.ServicePort{{
				Name: "memcached", Port: memcachedPort, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString("memcached"),
			}},
		},
	}
}

// desiredBudget is its disruption budget, which one of fewer than two servers has not.
func desiredBudget(m *Memcached) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: ownedMeta(m),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable:             ptr.To(intstr.FromInt32(1)),
			Selector:                   &metav1.LabelSelector{MatchLabels: selectorLabels(m.Name)},
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
		},
	}
}

// makeExtras makes what is not there and corrects what differs.
func (r *reconciler) makeExtras(ctx context.Context, m *Memcached) error {
	var service corev1.Service
	wanted := desiredService(m)
	missing, err := r.read(ctx, m, &service)
	switch {
	case err != nil:
		return err
	case missing:
		err = client.IgnoreAlreadyExists(r.Create(ctx, wanted, fieldOwner))
	case metav1.IsControlledBy(&service, m) && !equality.Semantic.DeepDerivative(wanted.Spec, service.Spec):
		changed := service.DeepCopy()
		changed.Spec.Ports, changed.Spec.Selector = wanted.Spec.Ports, wanted.Spec.Selector
		err = r.Patch(ctx, changed, client.StrategicMergeFrom(&service), fieldOwner)
	}
	if err != nil || size(m) < 2 {
		return err
	}
	var budget policyv1.PodDisruptionBudget
	limit := desiredBudget(m)
	missing, err = r.read(ctx, m, &budget)
	switch {
	case err != nil:
		return err
	case missing:
		return client.IgnoreAlreadyExists(r.Create(ctx, limit, fieldOwner))
	case metav1.IsControlledBy(&budget, m) && !equality.Semantic.DeepDerivative(limit.Spec, budget.Spec):
		changed := budget.DeepCopy()
		changed.Spec = limit.Spec
		return r.Patch(ctx, changed, client.MergeFrom(&budget), fieldOwner)
	}
	return nil
}

// read takes the object of a Memcached's name from the cache.
func (r *reconciler) read(ctx context.Context, m *Memcached, into client.Object) (missing bool, err error) {
	err = r.Get(ctx, client.ObjectKeyFromObject(m), into, readOnlyNoCopy)
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}
