// Command controller_runtime is the benchmark's peer: an operator for Memcached on controller-runtime, tuned the way
// its best users tune it. It does the job of memcached-operator that the benchmark measures and nothing else.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	workers          = 16
	cacheSyncTimeout = 5 * time.Minute
)

func main() {
	serviceAccountDir := flag.String("service-account-dir", "/var/run/secrets/kubernetes.io/serviceaccount",
		"folder of the service account's token and ca.crt")
	extras := flag.Bool("extras", false, "make a Service and a disruption budget for each Memcached, too")
	flag.Parse()
	log.SetLogger(logr.Discard())
	if err := run(ctrl.SetupSignalHandler(), inCluster(*serviceAccountDir), *extras); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// inCluster is rest.InClusterConfig with a folder of one's choice. A negative QPS turns off the client's own throttle,
// as controller-runtime's GetConfig does.
func inCluster(serviceAccountDir string) *rest.Config {
	return &rest.Config{
		Host: "https://" + net.JoinHostPort(
			os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")),
		BearerTokenFile: filepath.Join(serviceAccountDir, "token"),
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(serviceAccountDir, "ca.crt")},
		QPS:             -1,
		UserAgent:       "memcached-operator-peer-go",
	}
}

func run(ctx context.Context, config *rest.Config, extras bool) error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	addToScheme(scheme)
	ours, err := labels.Parse("app=memcached," + instanceLabel)
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject:         map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: ours}},
		},
	})
	if err != nil {
		return err
	}
	if err := manager.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, podsOfIndex, ownerKey); err != nil {
		return err
	}
	operator := ctrl.NewControllerManagedBy(manager).
		Named("memcached").
		For(&Memcached{}).
		Owns(&appsv1.Deployment{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: deploymentMatters})).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(requestOf),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: podMatters})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, CacheSyncTimeout: cacheSyncTimeout})
	if extras {
		// Neither's status is of interest.
		operator = operator.Owns(&corev1.Service{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
			Owns(&policyv1.PodDisruptionBudget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	if err := operator.Complete(&reconciler{Client: manager.GetClient(), extras: extras}); err != nil {
		return err
	}
	return manager.Start(ctx)
}

func ownerKey(object client.Object) []string {
	return []string{fmt.Sprintf(namespaceAndKey, object.GetNamespace(), object.GetLabels()[instanceLabel])}
}

func requestOf(_ context.Context, pod client.Object) []reconcile.Request {
	name := types.NamespacedName{Namespace: pod.GetNamespace(), Name: pod.GetLabels()[instanceLabel]}
	return []reconcile.Request{{NamespacedName: name}}
}

// deploymentMatters leaves out the updates of a Deployment's status that no reconcile looks at.
func deploymentMatters(update event.UpdateEvent) bool {
	before, after := update.ObjectOld.(*appsv1.Deployment), update.ObjectNew.(*appsv1.Deployment)
	return before.UID != after.UID || before.Generation != after.Generation ||
		before.Status.ReadyReplicas != after.Status.ReadyReplicas ||
		len(before.Labels) != len(after.Labels) || len(before.OwnerReferences) != len(after.OwnerReferences)
}

// podMatters leaves out the updates of a pod that do not change whether it is a node.
func podMatters(update event.UpdateEvent) bool {
	before, after := update.ObjectOld.(*corev1.Pod), update.ObjectNew.(*corev1.Pod)
	return before.UID != after.UID || lives(before) != lives(after) ||
		before.Labels[instanceLabel] != after.Labels[instanceLabel]
}
