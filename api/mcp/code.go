// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/engine"
	"sandpit.dev/kernel"
)

// Bounds of the images of an answer: models take few, and clients cap their size.
const (
	mostImages     = 8
	mostImageBytes = 4 << 20
)

func runCode() tool {
	return tool{
		name: "run_code", title: "Run code", destructive: true, openWorld: true,
		about: "Run Python (or javascript, typescript, bash) in a sandbox as in a notebook: variables and imports stay for the next call. " +
			"Returns the last expression's value, what was printed, errors with traceback, and figures and images as images. " +
			"In Python !command and %magic lines and await work. Code that takes longer than wait_seconds goes on, and read_process reads it.",
		params: []param{
			{name: "code", kind: text, required: true, about: "The code.", aliases: []string{"source", "script", "cell", "python"}},
			paramSandbox(),
			{name: "language", kind: text, enum: []string{"python", "javascript", "typescript", "bash"}, about: "Default python.", aliases: []string{"lang", "kernel"}},
			{name: "context", kind: text, about: "Id of a context; left out: the language's own.", aliases: []string{"context_id"}},
			paramWait(mostWait.Seconds(), "Wait so long for its end, 0 to 55. Default 45."),
			{name: "timeout_seconds", kind: number, min: 0.1, max: engine.MaxCommandTimeout.Seconds(), about: "Interrupt it after this, default 600.", aliases: []string{"timeout"}},
			paramOutput(),
		},
		example: `{"code": "import math\nmath.pi"}`,
		run:     code,
	}
}

// cellShown is what a cell has shown so far.
type cellShown struct {
	stdout, stderr capture
	values         capture // results' texts
	images         []*mcp.ImageContent
	bytes          int
	left           int // images that are not in the answer
}

func code(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	r := engine.CodeRequest{
		TellArtifacts: true,
		Code:          a.text("code"), Language: a.text("language"), ContextID: a.text("context"),
		Timeout: time.Duration(a.number("timeout_seconds", 0) * float64(time.Second)),
	}
	limit := int(a.number("max_output_chars", defaultOutput))
	if err := a.err(); err != nil {
		return nil, err
	}
	wait := seconds(a.number("wait_seconds", defaultWait.Seconds()))
	if err := a.err(); err != nil {
		return nil, err
	}
	ref, err := c.place(ctx, true)
	if err != nil {
		return nil, err
	}
	if r.Timeout == 0 {
		r.Timeout = min(defaultTimeout, c.engine.MostCommandTime())
	}
	x := c.startCell(ctx, ref, r)
	if c.has(GroupProcess) {
		if !x.wait(ctx, wait) && ctx.Err() == nil && x.id() != "" && c.cells.keep(x) {
			return x.answer(ctx, c, limit)
		}
	}
	select {
	case <-x.done:
		return x.answer(ctx, c, limit)
	case <-ctx.Done():
	}
	x.cancel(context.Cause(ctx))
	<-x.done
	if errors.Is(context.Cause(ctx), transport.ErrStopping) {
		return nil, transport.ErrStopping
	}
	return nil, ctx.Err()
}

// answer shows a cell as it is by now.
func (x *cell) answer(ctx context.Context, c *call, limit int) (*answer, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended() {
		c.cells.drop(x)
		if x.err != nil {
			return nil, x.err
		}
		out := x.shown.answer(&x.res, x.ref, limit)
		if !x.res.NoArtifacts {
			c.addMade(ctx, out, x.ref, x.began)
		}
		return out, nil
	}
	out := &answer{verdict: "still running after " + took(time.Since(x.began)) + ": process " + x.start.CellID + " · sandbox " + x.ref, images: x.shown.images}
	if x.start.ContextID != "" {
		out.verdict += " · context " + x.start.ContextID
	}
	out.lines = append(out.lines, "next: "+nextRead(x.ref, x.start.CellID, 0)+", or stop_process, which interrupts it; the answers hold all output so far")
	x.shown.add(out, nil, limit)
	return out, nil
}

// result takes one value: its image if it has one that models can see, and its text.
func (s *cellShown) result(v kernel.Result) {
	image, mime := v.PNG, "image/png"
	if image == nil {
		image, mime = v.JPEG, "image/jpeg"
	}
	text := v.Text
	for _, other := range []string{v.Markdown, v.LaTeX, v.HTML, string(v.JSON), v.SVG} {
		if text == "" {
			text = other
		}
	}
	switch {
	case image == nil:
	case len(s.images) < mostImages && s.bytes+len(image) <= mostImageBytes:
		s.bytes += len(image)
		s.images = append(s.images, &mcp.ImageContent{Data: image, MIMEType: mime})
	default:
		s.left++
	}
	if text != "" {
		s.values.add([]byte(strings.TrimSuffix(text, "\n") + "\n"))
	}
}

func (s *cellShown) answer(res *engine.CodeResult, ref string, limit int) *answer {
	out := &answer{verdict: codeVerdict(res) + " · sandbox " + ref, images: s.images}
	if res.ContextID != "" {
		out.verdict += " · context " + res.ContextID
	}
	if res.CauseDetail != "" {
		out.lines = append(out.lines, "cause: "+res.CauseDetail)
	}
	if res.Dead {
		out.lines = append(out.lines, "next: the variables are gone; the next call starts anew")
	}
	out.lines = append(out.lines, changed(res.Changes, res.ChangesTotal, res.ChangesComplete)...)
	if res.Restarted != "" {
		out.notes = append(out.notes, "the context was started anew before this code, and variables of earlier calls are gone: "+res.Restarted)
	}
	if s.left > 0 {
		out.notes = append(out.notes, fmt.Sprintf("%d images are left out; save figures to files and use read_file", s.left))
	}
	if res.Dropped > 0 {
		out.notes = append(out.notes, fmt.Sprintf("%d results beyond the first %d are left out", res.Dropped, kernel.MaxResults))
	}
	s.add(out, res.Error, limit)
	return out
}

// add adds what was shown to an answer, within a bound.
func (s *cellShown) add(out *answer, e *kernel.Error, limit int) {
	trace := new(capture)
	if e != nil {
		lines := e.Traceback
		if len(lines) == 0 {
			lines = []string{e.Name + ": " + e.Value}
		}
		trace.add([]byte(strings.Join(lines, "\n") + "\n"))
	}
	whole := true
	// The value comes first, and an error before what was printed: each gets what those before it leave.
	for _, part := range []struct {
		name string
		c    *capture
	}{{"value", &s.values}, {"error", trace}, {"stdout", &s.stdout}, {"stderr", &s.stderr}} {
		head, tail := part.c.texts()
		if head == "" && tail == "" && part.c.bytes == 0 {
			continue
		}
		x := cut(head, tail, part.c.bytes, part.c.lines, max(limit, leastOutput/4))
		limit -= runes(x.text)
		whole = whole && x.whole()
		out.sections = append(out.sections, section{part.name, x.text})
	}
	if !whole {
		out.notes = append(out.notes, fmt.Sprintf("the output was shortened; print less, write it to a file and use read_file, or raise max_output_chars (at most %d)", mostOutput))
	}
	if out.sections == nil && len(s.images) == 0 {
		out.sections = []section{{"no value and no output", ""}}
	}
}

// codeVerdict says in a few words how it ended.
func codeVerdict(r *engine.CodeResult) string {
	how := ""
	switch r.Status {
	case engine.CodeOK:
		how = "ok"
		if r.ExitCode != 0 {
			how = "exit " + strconv.Itoa(r.ExitCode)
		}
	case engine.CodeError:
		how = "error"
		if r.Error != nil {
			how += " " + r.Error.Name
		}
	case engine.CodeInterrupted:
		how = "interrupted"
	case engine.CodeTimedOut:
		how = "interrupted: its timeout passed"
		if r.Dead {
			how = "killed: its timeout passed"
		}
	case engine.CodeEnded:
		how = "the kernel ended"
		if t := causeText(r.Cause); t != "" {
			how += " (" + t + ")"
		}
	}
	return how + " after " + took(r.Duration)
}
