// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"sandpit.dev/client"
)

func newStop(a *app) *cobra.Command {
	return a.verb(&cobra.Command{Use: "stop SANDBOX...", Short: "Stop sandboxes: their processes end, their files stay"}, (*client.Client).Stop)
}
