// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/sandbox"
)

// answer is what a tool has to say.
type answer struct {
	verdict    string   // the first line
	lines      []string // what follows it
	notes      []string // the server's remarks
	sections   []section
	image      *mcp.ImageContent
	images     []*mcp.ImageContent // more of them
	links      []*mcp.ResourceLink // to files that it speaks of
	structured any                 // complete by itself, or nil
	exact      bool                // the verdict is the whole text, which programs read: notes stand apart
}

// section is a part whose content is not the server's.
type section struct{ title, body string }

func (a *answer) result() *mcp.CallToolResult {
	r := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: a.text()}}}
	if a.exact && len(a.notes) > 0 {
		r.Content = append(r.Content, &mcp.TextContent{Text: "note: " + strings.Join(a.notes, "\nnote: ")})
	}
	if a.image != nil {
		r.Content = append(r.Content, a.image)
	}
	for _, one := range a.images {
		r.Content = append(r.Content, one)
	}
	for _, one := range a.links {
		r.Content = append(r.Content, one)
	}
	if a.structured != nil {
		r.StructuredContent = a.structured
	}
	return r
}

func (a *answer) text() string {
	if a.exact {
		return a.verdict
	}
	var b strings.Builder
	b.WriteString(a.verdict + "\n")
	for _, l := range a.lines {
		b.WriteString(l + "\n")
	}
	for _, n := range a.notes {
		b.WriteString("note: " + n + "\n")
	}
	for _, s := range a.sections {
		b.WriteString("--- " + s.title + " ---\n" + s.body)
		if s.body != "" && !strings.HasSuffix(s.body, "\n") {
			b.WriteByte('\n')
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// maxChanges bounds the changed files that an answer lists.
const maxChanges = 20

// changed lists what a command did to the workspace.
func changed(changes []sandbox.FileChange, total int, complete bool) []string {
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
			out = append(out, "  "+counted(n, "change", "changes")+" in "+printablePath(dir))
			told += n
		case dir == "":
			line := "  " + c.Action + " " + printablePath(c.Path)
			if c.Action != "deleted" {
				line += " (" + bytesText(c.Size) + ")"
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

// printablePath keeps a file's name, which a program chose, to one line.
func printablePath(p string) string {
	if strings.ContainsFunc(p, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(p)
	}
	return p
}

func bytesText(n int64) string {
	switch {
	case n < 10<<10:
		return strconv.FormatInt(n, 10) + " bytes"
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 100*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return d.Round(time.Second).String()
}
