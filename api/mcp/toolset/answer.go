// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/sandbox"
)

// Answer is what a tool has to say.
type Answer struct {
	Verdict    string   // the first line
	Lines      []string // what follows it
	Notes      []string // the server's remarks
	Sections   []Section
	Image      *mcp.ImageContent
	Images     []*mcp.ImageContent // more of them
	Links      []*mcp.ResourceLink // to files that it speaks of
	Structured any                 // complete by itself, or nil
	Ask        *Question           // nil: the answer is all of the above; else it is this alone
	exact      bool                // the verdict is the whole text, which programs read: notes stand apart
}

// Question is what the person in front of the client is asked. The client calls again with what was said.
type Question struct {
	Name  string // by which that call has it
	State string // that comes back with it; nobody but the server can make use of it
	Form  *mcp.ElicitParams
}

// Section is a part whose content is not the server's.
type Section struct{ Title, Body string }

// Result returns the answer as the protocol has it.
func (a *Answer) Result() *mcp.CallToolResult {
	if q := a.Ask; q != nil {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{q.Name: q.Form}, RequestState: q.State}
	}
	r := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: a.text()}}}
	if a.exact && len(a.Notes) > 0 {
		r.Content = append(r.Content, &mcp.TextContent{Text: "note: " + strings.Join(a.Notes, "\nnote: ")})
	}
	if a.Image != nil {
		r.Content = append(r.Content, a.Image)
	}
	for _, one := range a.Images {
		r.Content = append(r.Content, one)
	}
	for _, one := range a.Links {
		r.Content = append(r.Content, one)
	}
	if a.Structured != nil {
		r.StructuredContent = a.Structured
	}
	return r
}

func (a *Answer) text() string {
	if a.exact {
		return a.Verdict
	}
	var b strings.Builder
	b.WriteString(a.Verdict + "\n")
	for _, l := range a.Lines {
		b.WriteString(l + "\n")
	}
	for _, n := range a.Notes {
		b.WriteString("note: " + n + "\n")
	}
	for _, s := range a.Sections {
		b.WriteString("--- " + s.Title + " ---\n" + s.Body)
		if s.Body != "" && !strings.HasSuffix(s.Body, "\n") {
			b.WriteByte('\n')
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// maxChanges bounds the changed files that an answer lists.
const maxChanges = 20

// Changed lists what a command did to the workspace.
func Changed(changes []sandbox.FileChange, total int, complete bool) []string {
	if total == 0 && complete {
		return nil
	}
	total = max(total, len(changes))
	if total == 0 {
		return []string{"changed files: unknown; this host cannot tell"}
	}
	out := []string{fmt.Sprintf("changed files (%d):", total)}
	inside := make(map[string]int)
	for _, c := range changes {
		inside[within(c.Path)]++
	}
	told := 0
	for _, c := range changes {
		if len(out) > maxChanges {
			break
		}
		dir := within(c.Path)
		n, first := inside[dir]
		switch {
		case dir != "" && first:
			delete(inside, dir)
			out = append(out, "  "+Counted(n, "change", "changes")+" in "+PrintablePath(dir))
			told += n
		case dir == "":
			line := "  " + c.Action + " " + PrintablePath(c.Path)
			if c.Action != "deleted" {
				line += " (" + BytesText(c.Size) + ")"
			}
			out = append(out, line)
			told++
		}
	}
	if n := total - told; n > 0 {
		out = append(out, fmt.Sprintf("  … and %d more; list_files shows them", n))
	}
	if !complete {
		out = append(out, "  (there may be others: some changes were missed)")
	}
	return out
}

// within is the directory that a path is in, or is, whose files are the business of the
// programs that made them, and come in hundreds; "": it is in none.
func within(p string) string {
	end := 0
	for part := range strings.SplitSeq(p, "/") {
		end += len(part)
		switch part {
		case ".git", ".venv", "__pycache__", "node_modules":
			return p[:end]
		}
		end++
	}
	return ""
}

// PrintablePath keeps a file's name, which a program chose, to one line.
func PrintablePath(p string) string {
	if strings.ContainsFunc(p, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(p)
	}
	return p
}

// BytesText shows a number of bytes.
func BytesText(n int64) string {
	switch {
	case n < 10<<10:
		return strconv.FormatInt(n, 10) + " bytes"
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// Took shows how long something took.
func Took(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 100*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return d.Round(time.Second).String()
}

// TimeText shows a time; "" for none.
func TimeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Counted is a number of things.
func Counted(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}
