// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package audits has the commands about the audit log.
package audits

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/audit"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/fault"
)

// App is what the commands need of the program.
type App struct {
	Client   func() (*client.Client, error)
	In       io.Reader
	Out, Err io.Writer
	Takes    func(least, most int) cobra.PositionalArgs
	Group    func(*cobra.Command, []string) error
}

// New returns the group of commands.
func New(a App) *cobra.Command {
	c := &cobra.Command{
		Use:   "audit",
		Short: "Read, export and verify the audit log",
		Long: `Read, export and verify the audit log: every command with its output's ends and hash, every call that changes or
reads something, every refusal, in a chain of hashes that shows if a row was changed, removed, added or moved.
A project's admin sees the project's rows, the server's own administrator's token all.`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	c.AddCommand(a.ls(), a.verify(), a.export(), a.prune())
	return c
}

// filter adds the flags that select rows, and returns what reads them.
func filter(c *cobra.Command) func() (client.AuditQuery, error) {
	var q client.AuditQuery
	f := c.Flags()
	f.StringVar(&q.Sandbox, "sandbox", "", "of the sandbox with this id, deleted or not")
	f.StringVar(&q.Token, "by", "", "by the token of this id or name")
	f.StringSliceVar(&q.Types, "type", nil, "only of this type (exec, call, file.upload); may be given again")
	f.StringSliceVar(&q.Outcomes, "outcome", nil, "only these: ok, failed, denied, running; may be given again")
	f.StringVar(&q.Text, "text", "", "only rows with this in them")
	f.StringVar(&q.Project, "project", "", "of another project, or '*' for all and for the server; for the server's own administrator's token")
	since := f.String("since", "", "only from then on: 30d, 12h, or a time such as 2026-01-31T12:00:00Z")
	until := f.String("until", "", "only before then; in the same way")
	return func() (client.AuditQuery, error) {
		now := time.Now()
		for _, t := range []struct {
			name, value string
			to          *time.Time
		}{{"since", *since, &q.Since}, {"until", *until, &q.Until}} {
			at, ok := flags.Instant(now, t.value)
			if !ok {
				return q, exit.Misuse(c, "--%s is %q: it is a span such as 30d or 12h, or a time such as 2026-01-31T12:00:00Z", t.name, t.value)
			}
			*t.to = at
		}
		return q, nil
	}
}

func (a App) ls() *cobra.Command {
	c := &cobra.Command{
		Use: "ls [flags]", Aliases: []string{"list"}, Short: "List the audit log, newest first", Args: a.Takes(0, 0),
		Example: `  sandpit audit ls --since 1h --outcome denied,failed
  sandpit audit ls --type exec --text 'rm -rf' --format json`,
	}
	query := filter(c)
	limit := c.Flags().IntP("limit", "n", 50, "most rows; 0 is all")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		q, err := query()
		if err != nil {
			return err
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		page := *limit
		if page <= 0 || page > 500 {
			page = 500
		}
		found := []v1.AuditRecord{}
		for r, err := range cl.Audit(c.Context(), q, page) {
			if err != nil {
				return err
			}
			if found = append(found, *r); *limit > 0 && len(found) == *limit {
				break
			}
		}
		if out.IsData() {
			return output.Data(a.Out, *out, found)
		}
		rows := make([][]string, 0, len(found))
		for i := range found {
			r := &found[i]
			rows = append(rows, []string{r.At.Local().Format(time.DateTime), r.Outcome, r.Type, orDash(r.Actor), orDash(r.SandboxID), what(r)})
		}
		return output.Table(a.Out, []string{"AT", "OUTCOME", "TYPE", "BY", "SANDBOX", "WHAT"}, rows)
	}
	return c
}

func orDash(s *string) string {
	if s == nil {
		return "-"
	}
	return output.Printable(*s)
}

// what is one line about a row.
func what(r *v1.AuditRecord) string {
	var parts []string
	for _, s := range []*string{r.Command, r.Call, r.Path, r.Detail} {
		if s != nil && (len(parts) == 0 || s != r.Call || r.Command == nil) {
			parts = append(parts, *s)
		}
	}
	text := strings.Join(parts, " ")
	if r.ExitCode != nil && *r.ExitCode != 0 {
		text += fmt.Sprintf(" (exit %d)", *r.ExitCode)
	}
	return output.Printable(text)
}

func (a App) export() *cobra.Command {
	c := &cobra.Command{
		Use: "export [flags] FILE", Short: "Write the audit log to a file that can be verified anywhere", Args: a.Takes(1, 1),
		Long: `Write the audit log to a file, oldest first: lines of JSON of which the last is signed, so that "sandpit audit verify
FILE" finds any byte that was changed, removed, added or moved. FILE is written whole or not at all; - is the
standard output. With a filter a file has some rows only, and says so.`,
		Example: `  sandpit audit export --project '*' audit.jsonl
  sandpit audit export --since 30d --csv audit.csv`,
	}
	query := filter(c)
	csv := c.Flags().Bool("csv", false, "as CSV, for reading: nothing is signed")
	c.RunE = func(c *cobra.Command, args []string) error {
		q, err := query()
		if err != nil {
			return err
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		r, err := cl.ExportAudit(c.Context(), q, *csv)
		if err != nil {
			return err
		}
		defer r.Close()
		if args[0] == "-" {
			_, err := io.Copy(a.Out, r)
			return err
		}
		n, err := write(args[0], r)
		if err == nil {
			fmt.Fprintf(a.Err, "%s: %s\n", output.Printable(args[0]), output.Bytes(n))
		}
		return err
	}
	return c
}

// write writes a file, whole or not at all, for its owner alone.
func write(path string, r io.Reader) (n int64, err error) {
	w, err := os.CreateTemp(filepath.Dir(path), ".sandpit-audit-*")
	if err != nil {
		return 0, fault.Wrap(fault.Denied, err, "%s cannot be written", path)
	}
	defer func() {
		if err != nil {
			_ = w.Close()
			_ = os.Remove(w.Name())
		}
	}()
	if n, err = io.Copy(w, r); err != nil {
		return n, err
	}
	if err = w.Sync(); err == nil {
		err = w.Close()
	}
	if err == nil {
		err = os.Rename(w.Name(), path)
	}
	if err != nil {
		return n, fault.Wrap(fault.Denied, err, "%s cannot be written", path)
	}
	return n, nil
}

func (a App) verify() *cobra.Command {
	c := &cobra.Command{
		Use: "verify [flags] [FILE]", Short: "Check that nobody changed the audit log", Args: a.Takes(0, 1),
		Long: `Check an export of the audit log, without any server, or without FILE the server's own log. Any byte of an export that
was changed, removed, added or moved is found.

Whoever has a server's disk has its key, too, and can write another log. Against that keep the key and the hash of
the newest row, which this prints, somewhere else, and give them again by --key and --expect.`,
		Example: `  sandpit audit verify audit.jsonl
  sandpit audit verify audit.jsonl --key ed25519:... --expect WRITER:120:9f86d0...`,
	}
	key := c.Flags().String("key", "", "the key that must have signed FILE")
	expect := c.Flags().StringArray("expect", nil, "a row that must be there, WRITER:NUMBER:HASH; may be given again")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		report, err := a.check(c.Context(), c, args, *key, *expect)
		if err != nil {
			return err
		}
		if out.IsData() {
			return output.Data(a.Out, *out, report)
		}
		a.print(report)
		return nil
	}
	return c
}

func (a App) check(ctx context.Context, c *cobra.Command, args []string, key string, expect []string) (*v1.AuditReport, error) {
	if len(args) == 0 {
		if key != "" || len(expect) > 0 {
			return nil, exit.Misuse(c, "--key and --expect are for a FILE: export the log, and verify that")
		}
		cl, err := a.Client()
		if err != nil {
			return nil, err
		}
		return cl.VerifyAudit(ctx)
	}
	var by *audit.PublicKey
	if key != "" {
		k, err := audit.ParsePublicKey(key)
		if err != nil {
			return nil, err
		}
		by = &k
	}
	var known []audit.Expect
	for _, s := range expect {
		e, err := audit.ParseExpect(s)
		if err != nil {
			return nil, err
		}
		known = append(known, e)
	}
	in := a.In
	if args[0] != "-" {
		f, err := os.Open(args[0])
		if err != nil {
			return nil, fault.Wrap(fault.NotFound, err, "%s cannot be read", args[0])
		}
		defer f.Close()
		in = f
	}
	r, err := audit.VerifyExport(in, by, known)
	if err != nil {
		return nil, err
	}
	out := &v1.AuditReport{Key: r.Key.String(), Complete: r.Complete, Rows: r.Rows, Chains: []v1.AuditChain{}, Altered: append([]int64{}, r.Altered...)}
	if r.Rows > 0 {
		out.From, out.To = &r.From, &r.To
	}
	for _, ch := range r.Chains {
		out.Chains = append(out.Chains, v1.AuditChain{Writer: ch.Writer, From: ch.From, To: ch.To, Hash: ch.Hash.String()})
	}
	return out, nil
}

func (a App) print(r *v1.AuditReport) {
	fmt.Fprintf(a.Out, "verified: %s", output.Plural(int(r.Rows), "row"))
	if r.From != nil {
		fmt.Fprintf(a.Out, ", %s to %s", r.From.Local().Format(time.DateTime), r.To.Local().Format(time.DateTime))
	}
	fmt.Fprintln(a.Out)
	if !r.Complete {
		fmt.Fprintln(a.Out, "it has some rows of a log only: those that are there are as they were written")
	}
	fmt.Fprintln(a.Out, "signed by "+output.Printable(r.Key))
	for _, ch := range r.Chains {
		fmt.Fprintf(a.Out, "newest row %s:%d:%s\n", output.Printable(ch.Writer), ch.To, ch.Hash)
	}
	for _, n := range r.Altered {
		fmt.Fprintf(a.Out, "warning: row %d says that the server found the log changed\n", n)
	}
}

func (a App) prune() *cobra.Command {
	c := &cobra.Command{
		Use: "prune [flags] --before TIME", Short: "Delete the oldest rows of the audit log", Args: a.Takes(0, 0),
		Long: `Delete the rows of the audit log before a time, for the server's own administrator's token. A signed checkpoint
stays that says where the rest begins, so that it is verified as before. Rows are deleted by themselves when they
are as old as events.keep says.`,
		Example: `  sandpit audit prune --before 30d --dry-run`,
	}
	before := c.Flags().String("before", "", "how old rows have to be, such as 30d, or a time")
	dry := c.Flags().Bool("dry-run", false, "delete nothing, and say how many rows there are")
	c.RunE = func(c *cobra.Command, _ []string) error {
		at, ok := flags.Instant(time.Now(), *before)
		if !ok || at.IsZero() {
			return exit.Misuse(c, "--before is %q: it is a span such as 30d or 12h, or a time such as 2026-01-31T12:00:00Z", *before)
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		n, err := cl.PruneAudit(c.Context(), at, *dry)
		if err != nil {
			return err
		}
		verb := "deleted"
		if *dry {
			verb = "would be deleted"
		}
		fmt.Fprintf(a.Out, "%s %s\n", output.Plural(n, "row"), verb)
		return nil
	}
	return c
}
