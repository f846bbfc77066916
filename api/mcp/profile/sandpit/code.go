// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/kernel"
)

// Bounds of the images of an answer: models take few, and clients cap their size.
const (
	mostImages     = 8
	mostImageBytes = 4 << 20
)

func runCode(cs *cells) toolset.Tool {
	return toolset.Tool{
		Name: "run_code", Title: "Run code", Destructive: true, OpenWorld: true,
		About: "Run Python (or javascript, typescript, bash) in a sandbox as in a notebook: variables and imports stay for the next call. " +
			"Returns the last expression's value, what was printed, errors with traceback, and figures and images as images. " +
			"In Python !command and %magic lines and await work. Code that takes longer than wait_seconds goes on, and read_process reads it.",
		Params: []toolset.Param{
			{Name: "code", Kind: toolset.Text, Required: true, About: "The code.", Aliases: []string{"source", "script", "cell", "python"}},
			paramSandbox(),
			{Name: "language", Kind: toolset.Text, Enum: []string{"python", "javascript", "typescript", "bash"}, About: "Default python.", Aliases: []string{"lang", "kernel"}},
			{Name: "context", Kind: toolset.Text, About: "Id of a context; left out: the language's own.", Aliases: []string{"context_id"}},
			paramWait(toolset.MostWait.Seconds(), "For its end; default 45."),
			{Name: "timeout_seconds", Kind: toolset.Number, Min: 0.1, Max: engine.MaxCommandTimeout.Seconds(), About: "Interrupt it after this, default 600.", Aliases: []string{"timeout"}},
			paramOutput(),
		},
		Example: `{"code": "import math\nmath.pi"}`,
		Run:     func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) { return runCell(ctx, c, cs) },
	}
}

// cellShown is what a cell has shown so far.
type cellShown struct {
	stdout, stderr toolset.Capture
	values         toolset.Capture // results' texts
	images         []*mcp.ImageContent
	bytes          int
	left           int // images that are not in the answer
}

func runCell(ctx context.Context, c *toolset.Call, cs *cells) (*toolset.Answer, error) {
	a := c.Args
	r := code.Request{
		TellArtifacts: true,
		Code:          a.Text("code"), Language: a.Text("language"), ContextID: a.Text("context"),
		Timeout: time.Duration(a.Number("timeout_seconds", 0) * float64(time.Second)),
	}
	limit := int(a.Number("max_output_chars", toolset.DefaultOutput))
	if err := a.Err(); err != nil {
		return nil, err
	}
	wait := toolset.Seconds(a.Number("wait_seconds", toolset.DefaultWait.Seconds()))
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, true)
	if err != nil {
		return nil, err
	}
	if r.Timeout == 0 {
		r.Timeout = min(toolset.DefaultTimeout, c.Server.MostCommandTime())
	}
	x := startCell(ctx, c, ref, r)
	if c.Has(toolset.GroupProcess) {
		if !x.wait(ctx, wait) && ctx.Err() == nil && x.id() != "" && cs.keep(x) {
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
func (x *cell) answer(ctx context.Context, c *toolset.Call, limit int) (*toolset.Answer, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended() {
		x.drop()
		if x.err != nil {
			return nil, x.err
		}
		out := x.shown.answer(&x.res, x.ref, limit)
		if !x.res.NoArtifacts {
			c.AddMade(ctx, out, x.ref, x.began)
		}
		return out, nil
	}
	out := &toolset.Answer{Verdict: "still running after " + toolset.Took(time.Since(x.began)) + ": process " + x.start.CellID + " · sandbox " + x.ref, Images: x.shown.images}
	if x.start.ContextID != "" {
		out.Verdict += " · context " + x.start.ContextID
	}
	out.Lines = append(out.Lines, "next: "+nextRead(x.ref, x.start.CellID, 0)+", or stop_process, which interrupts it; the answers hold all output so far")
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
		s.values.Add([]byte(strings.TrimSuffix(text, "\n") + "\n"))
	}
}

func (s *cellShown) answer(res *code.Result, ref string, limit int) *toolset.Answer {
	out := &toolset.Answer{Verdict: codeVerdict(res) + " · sandbox " + ref, Images: s.images}
	if res.ContextID != "" {
		out.Verdict += " · context " + res.ContextID
	}
	if res.CauseDetail != "" {
		out.Lines = append(out.Lines, "cause: "+res.CauseDetail)
	}
	if res.Dead {
		out.Lines = append(out.Lines, "next: the variables are gone; the next call starts anew")
	}
	out.Lines = append(out.Lines, toolset.Changed(res.Changes, res.ChangesTotal, res.ChangesComplete)...)
	if res.Restarted != "" {
		out.Notes = append(out.Notes, "the context was started anew before this code, and variables of earlier calls are gone: "+res.Restarted)
	}
	if s.left > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d images are left out; save figures to files and use read_file", s.left))
	}
	if res.Dropped > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d results beyond the first %d are left out", res.Dropped, kernel.MaxResults))
	}
	s.add(out, res.Error, limit)
	return out
}

// add adds what was shown to an answer, within a bound.
func (s *cellShown) add(out *toolset.Answer, e *kernel.Error, limit int) {
	trace := new(toolset.Capture)
	if e != nil {
		lines := e.Traceback
		if len(lines) == 0 {
			lines = []string{e.Name + ": " + e.Value}
		}
		trace.Add([]byte(strings.Join(lines, "\n") + "\n"))
	}
	whole := true
	// The value comes first, and an error before what was printed: each gets what those before it leave.
	for _, part := range []struct {
		name string
		c    *toolset.Capture
	}{{"value", &s.values}, {"error", trace}, {"stdout", &s.stdout}, {"stderr", &s.stderr}} {
		head, tail := part.c.Texts()
		if head == "" && tail == "" && part.c.Bytes == 0 {
			continue
		}
		x := toolset.Cut(head, tail, part.c.Bytes, part.c.Lines, max(limit, toolset.LeastOutput/4))
		limit -= toolset.Runes(x.Text)
		whole = whole && x.Whole()
		out.Sections = append(out.Sections, toolset.Section{Title: part.name, Body: x.Text})
	}
	if !whole {
		out.Notes = append(out.Notes, fmt.Sprintf("the output was shortened; print less, write it to a file and use read_file, or raise max_output_chars (at most %d)", toolset.MostOutput))
	}
	if out.Sections == nil && len(s.images) == 0 {
		out.Sections = []toolset.Section{{Title: "no value and no output", Body: ""}}
	}
}

// codeVerdict says in a few words how it ended.
func codeVerdict(r *code.Result) string {
	how := ""
	switch r.Status {
	case code.OK:
		how = "ok"
		if r.ExitCode != 0 {
			how = "exit " + strconv.Itoa(r.ExitCode)
		}
	case code.Error:
		how = "error"
		if r.Error != nil {
			how += " " + r.Error.Name
		}
	case code.Interrupted:
		how = "interrupted"
	case code.TimedOut:
		how = "interrupted: its timeout passed"
		if r.Dead {
			how = "killed: its timeout passed"
		}
	case code.Ended:
		how = "the kernel ended"
		if t := toolset.CauseText(r.Cause); t != "" {
			how += " (" + t + ")"
		}
	}
	return how + " after " + toolset.Took(r.Duration)
}
