// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/synonym"
	"sandpit.dev/fault"
	"sandpit.dev/internal/spelling"
)

// FlagMistake returns the error for flags of c that cannot be read.
func FlagMistake(c *cobra.Command, err error) error {
	if err := synonymous(c, c.Flags().Args()); err != nil { // whose flags are another tool's, too
		return err
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if line := synonym.Flag(c.Name(), unknown.GetSpecifiedName()); line != "" {
			return exit.Misuse(c, "%s; %s", err, line)
		}
		return exit.Misuse(c, "%s%s", err, meantFlag(c, unknown))
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		why := errors.Unwrap(invalid)
		if number, ok := errors.AsType[*strconv.NumError](why); ok {
			what := map[string]string{"ParseBool": "true or false", "ParseFloat": "a number"}[number.Func]
			if what == "" {
				what = "a whole number"
			}
			why = fmt.Errorf("%q is not %s", number.Num, what)
		}
		if why != nil {
			return exit.Misuse(c, "--%s: %s", invalid.GetFlag().Name, why)
		}
	}
	return exit.Misuse(c, "%s", err)
}

// meantFlag is an ending for a message about a flag that is not known: the one that it was
// likely meant to be.
func meantFlag(c *cobra.Command, unknown *pflag.NotExistError) string {
	name := unknown.GetSpecifiedName()
	if len(name) < 2 {
		return ""
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if best := nearest(name, names); best != "" {
		return "; did you mean --" + best + "?"
	}
	return ""
}

// nearest returns the one of names that typed was likely meant to be; empty: none.
func nearest(typed string, names []string) string {
	best, least := "", 3 // more slips are another word
	for _, name := range names {
		d := spelling.Distance(typed, name)
		switch {
		case d >= len(typed) || d > 2 || d > least:
		case d == least && best[0] == typed[0]: // the first letter is seldom wrong
		default:
			best, least = name, d
		}
	}
	return best
}

// inFlags returns a message of the server's in which a field of the request, which begins it, has
// the name of the flag of c that gave it.
func inFlags(c *cobra.Command, message string) string {
	end := strings.IndexAny(message, " :")
	if c == nil || end < 0 {
		return message
	}
	if given := GivenBy(c, message[:end]); len(given) > 0 {
		return given[0] + message[end:]
	}
	return message
}

// GivenBy returns the flags of c that a field of the request came from, as they are typed.
func GivenBy(c *cobra.Command, field string) (given []string) {
	for _, name := range flagsOf(field) {
		if f := c.Flags().Lookup(name); f != nil && f.Changed {
			given = append(given, "--"+name)
		}
	}
	return given
}

// flagsOf returns the flags that a field of a request may come from.
func flagsOf(field string) []string {
	switch field {
	case "cpu_cores":
		return []string{"cpu"}
	case "image", "language", "cwd", "user", "pids", "name", "from_snapshot", "idle_action", "auto_delete", "auto_start", "auto_resume", "sudo", "checkpoints", "if_exists", "env_set", "env_unset":
		return []string{strings.ReplaceAll(field, "_", "-")}
	case "env":
		return []string{"env", "env-file"}
	case "stand_in_headers":
		return []string{"stand-in-header"}
	case "hosts", "scopes", "volumes":
		return []string{strings.TrimSuffix(field, "s")}
	case "extend_to":
		return []string{"extend"}
	case "key":
		return []string{"name"}
	case "memory_mb", "disk_mb":
		return []string{strings.TrimSuffix(field, "_mb")}
	case "metadata":
		return []string{"label"}
	case "network":
		return []string{"network", "allow", "allow-domain", "allow-cidr", "allow-port", "deny", "learn"}
	case "network.deny_domains", "network.deny_cidrs":
		return []string{"deny"}
	case "network.mode":
		return []string{"network"}
	case "network.allow_presets":
		return []string{"allow"}
	case "network.allow_domains", "network.allow_cidrs", "network.allow_ports":
		name := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(field, "network."), "s"), "_", "-")
		return []string{name, "allow"}
	case "ttl_seconds":
		return []string{"ttl", "ttl-mode"}
	case "idle_timeout_seconds", "retention_seconds", "timeout_seconds":
		return []string{strings.ReplaceAll(strings.TrimSuffix(field, "_seconds"), "_", "-")}
	}
	return nil
}

// noSandbox matches what the server says of a sandbox that is not there.
var noSandbox = regexp.MustCompile(`^there is no sandbox "([^"]+)"`)

// callVerb matches a verb of the server's that is a command here, in a remedy.
var callVerb = regexp.MustCompile(`\((start|stop|resume) `)

// nextStep returns the remedy of an error in the words of the command line, where the server's are
// those of all its clients.
func (a *App) nextStep(e *fault.Error) string {
	if typed := noSandbox.FindStringSubmatch(e.Message); typed != nil && e.Code == fault.NotFound {
		if best := nearest(typed[1], a.Refs(context.Background())); best != "" {
			return fmt.Sprintf("did you mean %s? sandpit ls -a lists all", best)
		}
	}
	switch {
	case e.Remedy == "" && e.Code == fault.Invalid && a.Command != nil:
		return "see: " + a.Command.CommandPath() + " --help"
	case strings.HasPrefix(e.Remedy, "send the header Authorization") && a.Getenv("SANDPIT_TOKEN") != "":
		return "SANDPIT_TOKEN is set to it: correct or unset it; sandpit token create, on the server, makes one"
	}
	return callVerb.ReplaceAllString(strings.NewReplacer(
		"list the sandboxes to see which there are, or create one", "sandpit ls -a lists all; sandpit create --name NAME makes one",
		"list the volumes to see which there are, or create one", "sandpit volume ls lists all; sandpit volume create NAME makes one",
		"list the snapshots to see which there are", "sandpit snapshot ls SANDBOX lists them",
		"list the secrets to see which there are", "sandpit secret ls lists them, with --sandbox those of one",
		"name hosts in allow_domains", "name hosts",
		"list the tokens to see which there are", "sandpit token ls lists them",
		"list its directory to see what is there", "see what is there with: sandpit exec SANDBOX ls -la",
		"delete that one, or say replace", "or replace that one with --replace",
	).Replace(e.Remedy), "(sandpit $1 ")
}
