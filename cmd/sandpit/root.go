// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/cobra"

	"sandpit.dev/cmd/sandpit/internal/audits"
	"sandpit.dev/cmd/sandpit/internal/certs"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/fleet"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/place"
	"sandpit.dev/cmd/sandpit/internal/projects"
	"sandpit.dev/cmd/sandpit/internal/settings"
	"sandpit.dev/cmd/sandpit/internal/usage"
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
server by themselves; "sandpit login URL" has them use one elsewhere. Which one a command speaks to is said by,
in this order: --server; SANDPIT_URL and SANDPIT_TOKEN; the kept server in use (sandpit server use). With the server's own
administrator's token SANDPIT_PROJECT says for which project a command is (default: "default").

A sandbox is named by its id, or by the key that it was created with.

Exit status: 0, or 1 after a failure, or 2 after a mistake in the command line. run, exec and shell
pass on the status of what they run, and end with 125 after a failure of sandpit's own, or if
output was cut off. After an interrupt it is 130, after another signal 128 and its number.

With -o json an error is a line of JSON on standard error: {"error": {"code", "message", "remedy", "fields"}}.`,
		Args:          cobra.ArbitraryArgs,
		RunE:          group,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       a.versionLine(),

		SuggestionsMinimumDistance: 2,
	}
	root.Flags().BoolP("version", "v", false, "print the version of this program")
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.PersistentFlags().Var((*place.Flag)(&a.Server), "server", "speak to this server: a kept one's name, a URL, or local")
	_ = root.RegisterFlagCompletionFunc("server", a.completeServer)
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		a.choose(c)
		return a.takesServer(c)
	}
	root.SetFlagErrorFunc(flagMistake)
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
		newRun(a), newRuns(a), newCreate(a), newLs(a), newInspect(a), newExec(a), newCode(a), newContext(a), newPs(a), newLogs(a), newAttach(a), newWait(a), newKill(a), newShell(a), newCp(a), newGit(a),
		newPorts(a), newPreview(a), newOpen(a), newForward(a),
		newStop(a), newStart(a), newRestart(a), newArchive(a), newPause(a), newResume(a), newUpdate(a), newRename(a), newNetwork(a), newSecret(a), newRm(a), newActivity(a), newWatch(a))
	add(groupTime, newSnapshot(a), newRollback(a), newFork(a), newDiff(a), newReset(a), newVolume(a), listOf("snapshots", newSnapshot(a), newSnapshotLs(a)), listOf("volumes", newVolume(a), newVolumeLs(a)))
	add(groupAgents, newMCP(a), newConnect(a), newSkill(a), listOf("skills", newSkill(a), newSkillLs(a)), newToken(a))
	add(groupServer, newUp(a), newDown(a), newServe(a), newLogin(a), newLogout(a), newWhoami(a), newInfo(a), newServer(a), newImage(a), newTemplate(a), listOf("templates", newTemplate(a), a.templates().Ls()), listOf("images", newImage(a), newImageLs(a)), settings.New(a.settings()), fleet.New(fleet.App{Client: a.client, Out: a.stdout, Err: a.stderr, Takes: takes, Group: group}), projects.New(a.projects()), projects.Limits(a.projects()), usage.New(a.usage()), usage.NewStats(a.usage()), usage.NewTop(a.usage()),
		audits.New(audits.App{Client: a.client, In: a.stdin, Out: a.stdout, Err: a.stderr, Takes: takes, Group: group}), newBackup(a), newRestore(a), certs.New(certs.App{Out: a.stdout, Takes: takes, Group: group}), newDoctor(a), newBench(a), newVersion(a))
	return root
}

// settings is what the commands about settings need.
func (a *app) settings() settings.App {
	return settings.App{Client: a.client, Out: a.stdout, Takes: takes, Group: group, Soon: a.soon}
}

// usage is what the commands about usage need.
func (a *app) usage() usage.App {
	return usage.App{Client: a.client, Out: a.stdout, Takes: takes}
}

// projects is what the commands about projects need.
func (a *app) projects() projects.App {
	return projects.App{Client: a.client, Out: a.stdout, Takes: takes, Group: group, Each: a.eachName, Soon: a.soon}
}

// listOf returns the command that lists a group's things by their plural. It has the group's
// commands, too, and is not shown: the group is.
func listOf(plural string, group, ls *cobra.Command) *cobra.Command {
	_, arguments, _ := strings.Cut(ls.Use, " ")
	ls.Use, ls.Aliases, ls.Hidden = plural+" "+arguments, nil, true
	for _, c := range group.Commands() {
		group.RemoveCommand(c)
		ls.AddCommand(c)
	}
	return ls
}

// group is what a command does that only holds others: it shows them, and
// refuses what is none of them.
func group(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	if err := synonymous(c, args); err != nil {
		return err
	}
	c.SuggestionsMinimumDistance = c.Root().SuggestionsMinimumDistance
	near := c.SuggestionsFor(args[0])
	if len(near) == 0 {
		return exit.Misuse(c, "there is no command %q", c.CommandPath()+" "+args[0])
	}
	return exit.Misuse(c, "there is no command %q; did you mean %s?", c.CommandPath()+" "+args[0], strings.Join(near, " or "))
}

// takes checks how many arguments there are; most -1: any number.
func takes(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			return nil
		}
		return exit.Misuse(c, "%s: it was given %s; the usage is: %s", c.CommandPath(), output.Plural(len(args), "argument"), c.UseLine())
	}
}

// namedByFlag refuses arguments, of which one is likely the name of what is to be made.
func namedByFlag(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			return exit.Misuse(c, "a %s is named by a flag: %s --name %s", what, c.CommandPath(), args[0])
		}
		return takes(0, 0)(c, args)
	}
}
