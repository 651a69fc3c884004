package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// podsOfIndex finds the pods of one Memcached without a walk over all of them.
	podsOfIndex     = "memcached"
	strangerRetry   = time.Minute
	fieldOwner      = client.FieldOwner("memcached-operator")
	readOnlyNoCopy  = client.UnsafeDisableDeepCopyOption(true)
	namespaceAndKey = "%s/%s"
)

type reconciler struct {
	client.Client
	extras bool
}

// Reconcile makes one Memcached's Deployment and status what they should be. What comes from the cache is shared and
// only read; every write goes out as a patch of an object made for it.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var memcached Memcached
	if err := r.Get(ctx, request.NamespacedName, &memcached, readOnlyNoCopy); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if memcached.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}

	var deployment appsv1.Deployment
	err := r.Get(ctx, request.NamespacedName, &deployment, readOnlyNoCopy)
	switch {
	case apierrors.IsNotFound(err):
		// An "already exists" comes from a cache that lags behind our own write: its event will be back here.
		err = r.Create(ctx, desiredDeployment(&memcached), fieldOwner)
		if err == nil && r.extras {
			err = r.makeExtras(ctx, &memcached)
		}
		return ctrl.Result{}, client.IgnoreAlreadyExists(err)
	case err != nil:
		return ctrl.Result{}, err
	case !metav1.IsControlledBy(&deployment, &memcached):
		return ctrl.Result{RequeueAfter: strangerRetry}, nil
	}
	if err := r.correct(ctx, &memcached, &deployment); err != nil {
		return ctrl.Result{}, err
	}
	if r.extras {
		if err := r.makeExtras(ctx, &memcached); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, r.report(ctx, &memcached, &deployment)
}

// correct patches the live Deployment where it differs from what is wanted. A change of replicas alone is the common
// case and the cheapest patch there is.
func (r *reconciler) correct(ctx context.Context, memcached *Memcached, live *appsv1.Deployment) error {
	desired := desiredDeployment(memcached)
	target := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: live.Namespace, Name: live.Name}}
	if !equality.Semantic.DeepDerivative(desired.Spec.Template, live.Spec.Template) ||
		!equality.Semantic.DeepDerivative(desired.Labels, live.Labels) {
		changed := live.DeepCopy()
		changed.Spec.Replicas = desired.Spec.Replicas
		changed.Spec.Template = desired.Spec.Template
		for key, value := range desired.Labels {
			changed.Labels[key] = value
		}
		return r.Patch(ctx, changed, client.StrategicMergeFrom(live), fieldOwner)
	}
	if live.Spec.Replicas == nil || *live.Spec.Replicas != *desired.Spec.Replicas {
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, *desired.Spec.Replicas)
		return r.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), fieldOwner)
	}
	return nil
}

// report patches the status if what is observed is not what it says.
func (r *reconciler) report(ctx context.Context, memcached *Memcached, deployment *appsv1.Deployment) error {
	nodes, err := r.nodes(ctx, memcached)
	if err != nil {
		return err
	}
	// The number of nodes, not the Deployment's own count, which arrives later and would cost a write of its own.
	status := MemcachedStatus{
		Nodes:              nodes,
		Replicas:           int32(len(nodes)),
		ReadyReplicas:      deployment.Status.ReadyReplicas,
		ObservedGeneration: memcached.Generation,
	}
	if status.equal(&memcached.Status) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	target := &Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: memcached.Namespace, Name: memcached.Name}}
	err = r.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), fieldOwner)
	return client.IgnoreNotFound(err)
}

// nodes are the sorted names of the pods that live.
func (r *reconciler) nodes(ctx context.Context, memcached *Memcached) ([]string, error) {
	var pods corev1.PodList
	key := fmt.Sprintf(namespaceAndKey, memcached.Namespace, memcached.Name)
	if err := r.List(ctx, &pods, client.MatchingFields{podsOfIndex: key}, readOnlyNoCopy); err != nil {
		return nil, err
	}
	nodes := make([]string, 0, len(pods.Items))
	for i := range pods.Items {
		if lives(&pods.Items[i]) {
			nodes = append(nodes, pods.Items[i].Name)
		}
	}
	slices.Sort(nodes)
	return nodes, nil
}

// lives tells whether a pod is neither terminating nor finished.
func lives(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}
