// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command helm is Helm, which also says by --version what it is.
package main

import (
	"errors"
	"fmt"
	"os"

	helm "helm.sh/helm/v4/pkg/cmd"
	"helm.sh/helm/v4/pkg/kube"
)

func main() { os.Exit(run()) }

// run runs a command, and returns what the program ends with.
func run() int {
	kube.ManagedFieldsManager = "helm" // whatever the program's name is
	root, err := helm.NewRootCmd(os.Stdout, os.Args[1:], helm.SetupLogging)
	if err != nil {
		fmt.Fprintln(os.Stderr, "helm:", err)
		return 1
	}
	root.Version = "4.3.2"
	err = root.Execute() // which says what is wrong
	if e, ok := errors.AsType[helm.CommandError](err); ok {
		return e.ExitCode
	}
	if err != nil {
		return 1
	}
	return 0
}
