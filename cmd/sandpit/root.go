// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/audits"
	"sandpit.dev/cmd/sandpit/internal/certs"
	"sandpit.dev/cmd/sandpit/internal/copying"
	"sandpit.dev/cmd/sandpit/internal/events"
	"sandpit.dev/cmd/sandpit/internal/filecmd"
	"sandpit.dev/cmd/sandpit/internal/fleet"
	"sandpit.dev/cmd/sandpit/internal/images"
	"sandpit.dev/cmd/sandpit/internal/login"
	"sandpit.dev/cmd/sandpit/internal/mcp"
	"sandpit.dev/cmd/sandpit/internal/network"
	"sandpit.dev/cmd/sandpit/internal/place"
	"sandpit.dev/cmd/sandpit/internal/previewlinks"
	"sandpit.dev/cmd/sandpit/internal/projects"
	"sandpit.dev/cmd/sandpit/internal/server"
	"sandpit.dev/cmd/sandpit/internal/sessions"
	"sandpit.dev/cmd/sandpit/internal/settings"
	"sandpit.dev/cmd/sandpit/internal/skills"
	"sandpit.dev/cmd/sandpit/internal/snapshots"
	"sandpit.dev/cmd/sandpit/internal/usage"
	"sandpit.dev/cmd/sandpit/internal/volumes"
)

// Groups of the list of commands.
const (
	groupSandbox = "sandbox"
	groupTime    = "time"
	groupServer  = "server"
	groupAgents  = "agents"
)

// newRoot is the list of commands: a new one is a line here.
func newRoot(a *app.App) *cobra.Command {
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
		RunE:          app.Group,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       versionLine(a),

		SuggestionsMinimumDistance: 2,
	}
	root.Flags().BoolP("version", "v", false, "print the version of this program")
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.PersistentFlags().Var((*place.Flag)(&a.Server), "server", "speak to this server: a kept one's name, a URL, or local")
	_ = root.RegisterFlagCompletionFunc("server", func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return login.CompleteServer(a, c, args, typed)
	})
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		a.Choose(c)
		return login.TakesServer(a, c)
	}
	root.SetFlagErrorFunc(app.FlagMistake)
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
		newRun(a), newRuns(a), newCreate(a), newLs(a), newInspect(a), newExec(a), newCode(a), newContext(a), newPs(a), newLogs(a), newAttach(a), newWait(a), newKill(a), newShell(a), copying.New(a), filecmd.New(fileCommands(a)), newGit(a),
		newPorts(a), newPreview(a), previewlinks.New(a), newOpen(a), newForward(a),
		newStop(a), newStart(a), newRestart(a), newArchive(a), newPause(a), newResume(a), newUpdate(a), newRename(a), network.New(a), newSecret(a), newRm(a), newActivity(a), newWatch(a))
	add(groupTime, snapshots.New(a), snapshots.NewRollback(a), newFork(a), newPromote(a), newDiff(a), newReset(a), volumes.New(a), listOf("snapshots", snapshots.New(a), snapshots.NewLs(a)), listOf("volumes", volumes.New(a), volumes.NewLs(a)))
	add(groupAgents, mcp.New(a, server.Starter), mcp.NewConnect(a), skills.New(a), listOf("skills", skills.New(a), skills.NewLs(a)), newToken(a))
	add(groupServer, sessions.NewConsole(a), sessions.New(a), server.NewUp(a, func(ctx context.Context, cl *client.Client, r v1.CreateSandbox) (*v1.Sandbox, bool, error) {
		return create(ctx, a, cl, r)
	}), server.NewDown(a), server.NewServe(a), login.NewLogin(a), login.NewLogout(a), login.NewWhoami(a), newInfo(a), login.NewServer(a), images.New(a, templateCommands(a).Pool()), newTemplate(a), listOf("templates", newTemplate(a), templateCommands(a).Ls()), listOf("images", images.New(a, templateCommands(a).Pool()), images.NewLs(a)), settings.New(settingCommands(a)), fleet.New(fleet.App{Client: a.Client, Out: a.Stdout, Err: a.Stderr, Takes: app.Takes, Group: app.Group}), projects.New(projectCommands(a)), projects.Limits(projectCommands(a)), events.New(eventCommands(a)), events.NewWebhook(eventCommands(a)), usage.New(usageCommands(a)), usage.NewStats(usageCommands(a)), usage.NewTop(usageCommands(a)), usage.NewOverview(usageCommands(a)),
		audits.New(audits.App{Client: a.Client, In: a.Stdin, Out: a.Stdout, Err: a.Stderr, Takes: app.Takes, Group: app.Group}), newBackup(a), server.NewRestore(a), certs.New(certs.App{Out: a.Stdout, Takes: app.Takes, Group: app.Group}), server.NewDoctor(a), server.NewBench(a), newVersion(a))
	return root
}

// settingCommands is what the commands about settings need.
func settingCommands(a *app.App) settings.App {
	return settings.App{Client: a.Client, Out: a.Stdout, Takes: app.Takes, Group: app.Group, Soon: a.Soon}
}

// fileCommands is what the commands about files need.
func fileCommands(a *app.App) filecmd.App {
	return filecmd.App{Client: a.Client, Out: a.Stdout, Err: a.Stderr, Takes: app.Takes, Group: app.Group, Complete: a.CompletePath}
}

// usageCommands is what the commands about usage need.
func usageCommands(a *app.App) usage.App {
	return usage.App{Client: a.Client, Out: a.Stdout, Takes: app.Takes}
}

// eventCommands is what the commands about events need.
func eventCommands(a *app.App) events.App {
	return events.App{Client: a.Client, Out: a.Stdout, Err: a.Stderr, Takes: app.Takes, Group: app.Group, Each: a.EachName}
}

// projectCommands is what the commands about projects need.
func projectCommands(a *app.App) projects.App {
	return projects.App{Client: a.Client, Out: a.Stdout, Takes: app.Takes, Group: app.Group, Each: a.EachName, Soon: a.Soon}
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
