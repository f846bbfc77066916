// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// Groups of the list of commands.
const (
	groupSandbox = "sandbox"
	groupTime    = "time"
	groupServer  = "server"
	groupAgents  = "agents"
)

// newRoot is the list of commands: a new one is a line here.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "sandpit",
		Short: "Persistent, isolated Linux sandboxes for AI agents, on your own machine",
		Long: `Persistent, isolated Linux sandboxes for AI agents, on your own machine.

Begin with "sandpit up": it starts a server and says how to connect to it. Commands find that
server by themselves; SANDPIT_URL and SANDPIT_TOKEN point them at another.

A sandbox is named by its id, or by the key that it was created with.

Exit status: 0, or 1 after a failure, or 2 after a mistake in the command line. run, exec and shell
pass on the status of what they run, and end with 125 after a failure of sandpit's own.`,
		Args:          cobra.ArbitraryArgs,
		RunE:          group,
		SilenceErrors: true,
		SilenceUsage:  true,

		SuggestionsMinimumDistance: 2,
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return misuse(c, "%s", err) })
	root.AddGroup(
		&cobra.Group{ID: groupSandbox, Title: "Sandboxes:"},
		&cobra.Group{ID: groupTime, Title: "Snapshots and volumes:"},
		&cobra.Group{ID: groupAgents, Title: "Agents:"},
		&cobra.Group{ID: groupServer, Title: "Server:"},
	)
	add := func(id string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	add(groupSandbox,
		newRun(a), newRuns(a), newCreate(a), newLs(a), newExec(a), newCode(a), newPs(a), newLogs(a), newAttach(a), newKill(a), newShell(a), newCp(a),
		newPorts(a), newPreview(a), newForward(a),
		newStop(a), newStart(a), newPause(a), newResume(a), newUpdate(a), newNetwork(a), newSecret(a), newRm(a), newActivity(a), newWatch(a))
	add(groupTime, newSnapshot(a), newRollback(a), newFork(a), newDiff(a), newRestart(a), newVolume(a))
	add(groupAgents, newMCP(a), newConnect(a), newToken(a))
	add(groupServer, newUp(a), newDown(a), newServe(a), newImage(a), newDoctor(a), newBench(a), newVersion(a))
	return root
}

// group is what a command does that only holds others: it shows them, and
// refuses what is none of them.
func group(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	near := c.SuggestionsFor(args[0])
	if len(near) == 0 {
		return misuse(c, "there is no command %q", c.CommandPath()+" "+args[0])
	}
	return misuse(c, "there is no command %q; did you mean %s?", c.CommandPath()+" "+args[0], strings.Join(near, " or "))
}

// takes checks how many arguments there are; most -1: any number.
func takes(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			return nil
		}
		return misuse(c, "%s: %d arguments were given; the usage is: %s", c.CommandPath(), len(args), c.UseLine())
	}
}
