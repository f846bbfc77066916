// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/cobra"
)

func newExec(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "exec [flags] SANDBOX [--] CMD [ARG]... | exec [flags] SANDBOX -c TEXT",
		Short: "Run a command in a sandbox",
		Long: `Run a command in a sandbox, with its output as it comes and its exit status as ours.

CMD and its arguments are run as they are, without a shell; -c takes shell text, as sh -c does.
Flags may stand before SANDBOX or between it and CMD; all after CMD is CMD's own.

Standard input is given to the command if it is a pipe or a file, up to 8 MiB; -n leaves it alone,
in a loop that reads a file, say. A stopped sandbox is started, unless somebody stopped it on purpose.

Ctrl-C kills the command, with all that it started, and exits with 130. If the connection breaks the
command goes on: see sandpit activity. A failure of sandpit's own exits with 125.`,
		Example: `  sandpit exec web python main.py --verbose
  sandpit exec web -c 'ls *.csv | wc -l'
  sandpit exec web -u root -- apt-get --version
  cat data.csv | sandpit exec web sort
  sandpit exec -it web python`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeFirst,
		Args:                  cobra.ArbitraryArgs,
	}
	m := commandFlags(c, true)
	out := formatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		ref, words, err := refThenWords(c, args)
		if err != nil {
			return err
		}
		if err := m.check(words); err != nil {
			return err
		}
		cl, err := a.client()
		if err != nil {
			return own(err)
		}
		if m.tty {
			return a.atTerminal(c.Context(), cl, ref, m)
		}
		r, err := m.request(a)
		if err != nil {
			return own(err)
		}
		if *out == asJSON {
			return m.collect(c.Context(), a, cl, ref, r)
		}
		return m.stream(c.Context(), a, cl, ref, r)
	}
	return c
}

// refThenWords splits off SANDBOX, and reads flags that stand after it.
func refThenWords(c *cobra.Command, args []string) (ref string, words []string, err error) {
	if len(args) == 0 {
		return "", nil, misuse(c, "there is no sandbox named; the usage is: %s", c.UseLine())
	}
	ref, words = args[0], args[1:]
	if len(words) > 0 && strings.HasPrefix(words[0], "-") && words[0] != "-" {
		if err := c.Flags().Parse(words); err != nil {
			return "", nil, misuse(c, "%s", err)
		}
		if asked, err := c.Flags().GetBool("help"); err == nil && asked {
			return "", nil, misuse(c, "flags that ask for help stand before SANDBOX")
		}
		words = c.Flags().Args()
	}
	return ref, words, nil
}
