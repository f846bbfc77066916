// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"sandpit.dev/client"
)

func newPause(a *app) *cobra.Command {
	return a.verb(&cobra.Command{
		Use:   "pause SANDBOX...",
		Short: "Freeze sandboxes with all that runs in them",
		Long: `Freeze sandboxes: their processes stand still, keep their memory, and go on where they were when they are
resumed. Timeouts of commands stand still too, and nothing is counted as running time.`,
	}, (*client.Client).Pause)
}

func newResume(a *app) *cobra.Command {
	return a.verb(&cobra.Command{Use: "resume SANDBOX...", Short: "Let paused sandboxes go on"}, (*client.Client).Resume)
}
