// Command messages writes, as JSON, how Kubernetes' Go types stand in protobuf and in JSON. Its arguments are kinds such
// as apps/v1/Deployment; with them go all the types that they are made of.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"reflect"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// field is one field of a message. An embedded one has no name: what it holds stands beside the other fields in JSON.
type field struct {
	Number int    `json:"number"`
	Name   string `json:"name,omitempty"`
	Go     string `json:"go"`
	// Type is a message's name, or one of string, bytes, raw (bytes that are no base64 in JSON), bool, int32, int64, double.
	Type  string `json:"type"`
	Shape string `json:"shape,omitempty"` // list, map (of strings to Type) or pointer
	Omit  bool   `json:"omit,omitempty"`  // left out of JSON when empty
}

type table struct {
	Kinds    map[string]string  `json:"kinds"` // apiVersion/kind to message
	Messages map[string][]field `json:"messages"`
}

var (
	marshaler = reflect.TypeFor[json.Marshaler]()
	bytes     = reflect.TypeFor[[]byte]()
)

func main() {
	log.SetFlags(0)
	utilruntime.Must(apiextensions.AddToScheme(scheme.Scheme))
	found := table{Kinds: map[string]string{}, Messages: map[string][]field{}}
	for _, said := range os.Args[1:] {
		slash := strings.LastIndex(said, "/")
		gvk := schema.FromAPIVersionAndKind(said[:slash], said[slash+1:])
		object, err := scheme.Scheme.New(gvk)
		if err != nil {
			log.Fatal(err)
		}
		found.Kinds[said] = found.add(reflect.TypeOf(object).Elem())
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		log.Fatal(err)
	}
}

// add makes sure of a message and returns its name.
func (t *table) add(message reflect.Type) string {
	name := message.PkgPath() + "." + message.Name()
	if _, known := t.Messages[name]; known {
		return name
	}
	t.Messages[name] = nil // types may hold themselves
	t.Messages[name] = t.fields(name, message)
	return name
}

func (t *table) fields(name string, message reflect.Type) []field {
	// Types that say themselves how they are written, and whose fields are not those of the Go type.
	if name == "k8s.io/apimachinery/pkg/api/resource.Quantity" {
		return []field{{Number: 1, Name: "string", Go: "String", Type: "string", Shape: "pointer"}}
	}
	for _, source := range []string{"ProtoTime", "ProtoMicroTime"} {
		if method, ok := reflect.PointerTo(message).MethodByName(source); ok {
			return t.fields(name, method.Type.Out(0).Elem())
		}
	}
	if message.Kind() == reflect.Slice { // a list that is a message of its own, as proto has no lists of lists
		return []field{{Number: 1, Go: "Items", Type: t.typeOf(message.Elem(), false), Shape: "list"}}
	}
	custom := message.Implements(marshaler)
	fields := []field{}
	for each := range message.Fields() {
		tag := strings.Split(each.Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			continue // the TypeMeta, or what is not written
		}
		number, err := strconv.Atoi(tag[1])
		if err != nil {
			log.Fatalf("%s.%s: %v", name, each.Name, err)
		}
		fields = append(fields, t.field(number, tag, each, custom))
	}
	return fields
}

func (t *table) field(number int, tag []string, of reflect.StructField, custom bool) field {
	made := field{Number: number, Go: of.Name}
	options := strings.Split(of.Tag.Get("json"), ",")
	if made.Name = options[0]; custom {
		for _, part := range tag {
			if name, ok := strings.CutPrefix(part, "name="); ok {
				made.Name = name
			}
		}
	} else if made.Name == "" && !of.Anonymous || made.Name == "-" {
		log.Fatalf("%s: a json tag that is not understood: %q", of.Name, of.Tag)
	}
	value := of.Type
	for _, option := range options[1:] {
		made.Omit = made.Omit || option == "omitzero" || option == "omitempty" && value.Kind() != reflect.Struct
	}
	switch {
	case value.Kind() == reflect.Pointer:
		made.Shape, value = "pointer", value.Elem()
	case value.Kind() == reflect.Map:
		if value.Key().Kind() != reflect.String {
			log.Fatalf("%s: a map whose keys are no strings", of.Name)
		}
		made.Shape, value = "map", value.Elem()
	case value.Kind() == reflect.Slice && !value.ConvertibleTo(bytes):
		made.Shape, value = "list", value.Elem()
	}
	made.Type = t.typeOf(value, custom)
	return made
}

func (t *table) typeOf(value reflect.Type, custom bool) string {
	switch kind := value.Kind(); {
	case value.ConvertibleTo(bytes) && kind == reflect.Slice:
		if custom {
			return "raw"
		}
		return "bytes"
	case kind == reflect.Struct, kind == reflect.Slice:
		return t.add(value)
	case kind == reflect.Float64:
		return "double"
	case kind == reflect.String, kind == reflect.Bool, kind == reflect.Int32, kind == reflect.Int64:
		return kind.String()
	}
	panic(fmt.Sprintf("a type that is not understood: %s", value))
}
