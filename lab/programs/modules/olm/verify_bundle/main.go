// The rules for bundles that `operator-sdk bundle validate --select-optional suite=operatorframework` has, from the
// module that it has them from; but for the one that pulls the bundle's images.
package main

import (
	"fmt"
	"os"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
)

var rules = validation.DefaultBundleValidators.WithValidators(
	validation.OperatorHubV2Validator,
	validation.StandardCapabilitiesValidator,
	validation.StandardCategoriesValidator,
	validation.ObjectValidator,
	validation.CommunityOperatorValidator,
	validation.AlphaDeprecatedAPIsValidator,
	validation.GoodPracticesValidator,
)

func main() {
	bundle, err := manifests.GetBundleFromDir(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	objects := bundle.ObjectsToValidate()
	for _, object := range bundle.Objects {
		objects = append(objects, object)
	}
	found := 0
	for _, result := range rules.Validate(objects...) {
		for _, complaint := range append(result.Errors, result.Warnings...) {
			fmt.Println(complaint)
			found++
		}
	}
	if found > 0 {
		os.Exit(1)
	}
}
