package main

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "cache.example.com", Version: "v1alpha1"}

// addToScheme makes the Memcached types known to a scheme.
func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &Memcached{}, &MemcachedList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}

// Memcached is the custom resource, as far as this operator reads and writes it.
type Memcached struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MemcachedSpec   `json:"spec,omitempty"`
	Status MemcachedStatus `json:"status,omitempty"`
}

// MemcachedSpec is what a user wants. A missing size means 1, as the CRD's default says.
type MemcachedSpec struct {
	Size  *int32 `json:"size,omitempty"`
	Image string `json:"image,omitempty"`
}

// MemcachedStatus is what this operator reports. Nothing is omitted when it is zero: a merge patch has to say it.
type MemcachedStatus struct {
	Nodes              []string `json:"nodes"`
	Replicas           int32    `json:"replicas"`
	ReadyReplicas      int32    `json:"readyReplicas"`
	ObservedGeneration int64    `json:"observedGeneration"`
}

func (s *MemcachedStatus) equal(other *MemcachedStatus) bool {
	return s.Replicas == other.Replicas && s.ReadyReplicas == other.ReadyReplicas &&
		s.ObservedGeneration == other.ObservedGeneration && slices.Equal(s.Nodes, other.Nodes)
}

// MemcachedList is a list of Memcached.
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Memcached `json:"items"`
}

// DeepCopyInto copies m to out; the two share nothing afterwards.
func (m *Memcached) DeepCopyInto(out *Memcached) {
	*out = *m
	m.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if m.Spec.Size != nil {
		size := *m.Spec.Size
		out.Spec.Size = &size
	}
	out.Status.Nodes = slices.Clone(m.Status.Nodes)
}

// DeepCopyObject implements runtime.Object.
func (m *Memcached) DeepCopyObject() runtime.Object {
	out := new(Memcached)
	m.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (l *MemcachedList) DeepCopyObject() runtime.Object {
	out := &MemcachedList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Memcached, len(l.Items))
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}
