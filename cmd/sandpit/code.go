// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/fault"
)

// codeRun holds the flags of one run of code, and what it has shown so far.
type codeRun struct {
	code, language, context, dir string
	timeout                      flags.Period
	stateless                    bool
	images                       int
}

func newCode(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "code [flags] SANDBOX -c CODE | code [flags] SANDBOX FILE | code [flags] SANDBOX -",
		Short: "Run code in a sandbox, in a context whose variables live on",
		Long: `Run Python, JavaScript, TypeScript or bash in a sandbox. What one run defines the next one knows: each
language has a context that lives until the sandbox stops, and sandpit context makes more of them.

The code is CODE, a file of this machine, or standard input for "-". What it prints comes as it is written, then
the value of its last expression as text; images are saved as files with --save DIR, and else only named.

The exit status is 0, or 1 after an error in the code (of bash its own), or that of a context that ended. Ctrl-C
interrupts the code; its variables stay. A failure of sandpit's own exits with 125.`,
		Example: `  sandpit code web -c 'x = 6'
  sandpit code web -c 'x * 7'
  sandpit code web -l javascript script.js
  sandpit code web --save plots analysis.py`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.CompleteFirst,
		Args:                  app.Takes(1, 2),
	}
	r := &codeRun{}
	f := c.Flags()
	f.StringVarP(&r.code, "code", "c", "", "the code")
	f.StringVarP(&r.language, "language", "l", "", "python (the default), javascript, typescript or bash")
	f.StringVar(&r.context, "context", "", "run in the context with this id")
	f.BoolVar(&r.stateless, "stateless", false, "run in a context that lives for this code alone")
	f.StringVar(&r.dir, "save", "", "save images in this directory")
	f.StringVarP(&r.dir, "output", "o", "", "")
	_ = f.MarkHidden("output") // what --save was called
	_ = c.MarkFlagDirname("save")
	f.Var(&r.timeout, "timeout", "interrupt it after this long (default 5m)")
	_ = c.RegisterFlagCompletionFunc("language", cobra.FixedCompletions([]string{"python", "javascript", "typescript", "bash"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("context", func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp // of no sandbox yet
		}
		return completeContext(a, c, args[:1], typed)
	})
	c.RunE = func(c *cobra.Command, args []string) error {
		if f.Changed("code") == (len(args) == 2) {
			return exit.Misuse(c, "give the code by one of -c CODE, a file, and - for standard input")
		}
		if len(args) == 2 {
			if err := r.read(a, args[1]); err != nil {
				return exit.Own(err)
			}
		}
		cl, err := a.Client()
		if err != nil {
			return exit.Own(err)
		}
		return r.run(c.Context(), a, cl, args[0])
	}
	return c
}

// maxCode is what the server takes.
const maxCode = 1 << 20

// read reads the code from a file, or standard input.
func (r *codeRun) read(a *app.App, name string) error {
	in := io.Reader(a.Stdin)
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return fault.Wrap(fault.NotFound, err, "the code cannot be read: %v", err)
		}
		defer file.Close()
		in = file
	}
	b, err := io.ReadAll(io.LimitReader(in, maxCode+1))
	switch {
	case err != nil:
		return fault.Wrap(fault.Unavailable, err, "the code cannot be read: %v", err)
	case len(b) > maxCode:
		return fault.New(fault.TooLarge, "the code has more than %d bytes", maxCode).
			WithRemedy("copy it into the sandbox (sandpit cp) and run it there")
	}
	r.code = string(b)
	return nil
}

// run runs the code and shows what it gives.
func (r *codeRun) run(ctx context.Context, a *app.App, cl *client.Client, ref string) error {
	ctx, stop := interrupt.Context(ctx)
	defer stop()
	out, err := cl.StreamCode(ctx, ref, v1.RunCode{
		Code: r.code, Language: given0(r.language), ContextID: given0(r.context), Stateless: &r.stateless,
		TimeoutSeconds: r.timeout.ExactSeconds(), InterruptOnDisconnect: new(true),
	}, client.CodeSink{
		Started: func(s v1.CodeStarted) error {
			if s.Restarted != "" {
				a.Warn("the context was started anew (%s): earlier variables are gone", output.Printable(s.Restarted))
			}
			return nil
		},
		Output: func(data []byte, stderr bool) error {
			w := a.Stdout
			if stderr {
				w = a.Stderr
			}
			_, err := w.Write(data)
			return err
		},
		Result: func(v v1.CodeValue) error { return r.show(a, v) },
	})
	if err != nil {
		return exit.Own(interrupt.Ended(ctx, err))
	}
	if e := out.Error; e != nil {
		lines := e.Traceback
		if len(lines) == 0 {
			lines = []string{e.Name + ": " + e.Value}
		}
		if _, err := fmt.Fprintln(a.Stderr, strings.Join(lines, "\n")); err != nil {
			return exit.Own(err)
		}
	}
	if out.CauseDetail != "" || out.Status != "ok" && out.Error == nil {
		a.Warn("%s", output.Printable(strings.TrimSuffix(out.Status+": "+out.CauseDetail, ": ")))
	}
	return exit.Passing(out.ExitCode)
}

// given0 is nil for an empty text.
func given0(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// show shows one value: its images, and its text.
func (r *codeRun) show(a *app.App, v v1.CodeValue) error {
	for _, image := range []struct {
		kind string
		data []byte
	}{{"png", v.PNG}, {"jpeg", v.JPEG}, {"pdf", v.PDF}, {"svg", []byte(v.SVG)}} {
		if len(image.data) == 0 {
			continue
		}
		if err := r.save(a, image.kind, image.data); err != nil {
			return err
		}
	}
	text := v.Text
	for _, other := range []string{v.Markdown, v.LaTeX, v.HTML, indented(v.JSON)} {
		if text == "" {
			text = other
		}
	}
	if text == "" {
		return nil
	}
	_, err := fmt.Fprintln(a.Stdout, strings.TrimSuffix(text, "\n"))
	return err
}

func indented(j json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, j, "", "  ") != nil {
		return ""
	}
	return b.String()
}

// save writes an image to a file that is not there yet, or says that there is one.
func (r *codeRun) save(a *app.App, kind string, data []byte) error {
	if r.dir == "" {
		a.Warn("a %s image of %s is not shown; --save DIR saves it", strings.ToUpper(kind), output.Bytes(int64(len(data))))
		return nil
	}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return err
	}
	for {
		r.images++
		name := filepath.Join(r.dir, fmt.Sprintf("image-%d.%s", r.images, kind))
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if os.IsExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = file.Write(data)
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
		if err == nil {
			_, err = fmt.Fprintln(a.Stdout, "saved", name)
		}
		return err
	}
}
