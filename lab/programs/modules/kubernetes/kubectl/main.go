// Command kubectl is kubectl and nothing else. As one of the programs of the module's other binary it would take half as
// long again to start, and a run of the tests starts it some thousands of times.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	// kubectl prints its own errors and exits with a code for each.
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
