// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"
	"io"
	"strings"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/fault"
	"sandpit.dev/internal/spelling"
	"sandpit.dev/sandbox"
)

func editFile() toolset.Tool {
	return toolset.Tool{
		Name: "edit_file", Title: "Edit a file", Destructive: true,
		About: "Replace a text in a file of a sandbox. old_text must be in the file exactly once, with its white space, unless replace_all is true. Returns the change as a diff.",
		Params: []toolset.Param{
			toolset.PathParam("The file."),
			{Name: "old_text", Kind: toolset.Text, Required: true, About: "What is there, with enough lines around it to be the only one.", Aliases: []string{"old_string", "old_str", "search", "old"}},
			{Name: "new_text", Kind: toolset.Text, Required: true, About: "What is to be there.", Aliases: []string{"new_string", "new_str", "replace", "replacement", "new"}},
			paramSandbox(),
			{Name: "replace_all", Kind: toolset.Boolean, About: "Replace every place. Default false."},
		},
		Example: `{"path": "src/main.py", "old_text": "x = 1\n", "new_text": "x = 2\n"}`,
		Run:     edit,
	}
}

// maxDiff bounds the diff of an answer, in characters.
const maxDiff = 12_000

func edit(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	path, before, after, all := a.Text("path"), a.Text("old_text"), a.Text("new_text"), a.Bool("replace_all", false)
	switch {
	case before == "" && a.Has("old_text"):
		a.Add("old_text", "is empty; write_file writes a whole file")
	case before == after && a.Has("new_text"):
		a.Add("new_text", "is the same as old_text: there is nothing to change")
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	info, content, err := whole(ctx, c, ref, path)
	if err != nil {
		return nil, err
	}
	name := toolset.PrintablePath(info.Path)
	at := places(content, before)
	if len(at) == 0 && strings.Contains(content, "\r\n") { // models do not see how lines end
		if crlf := places(content, asCRLF(before)); len(crlf) > 0 {
			at, before, after = crlf, asCRLF(before), asCRLF(after)
			a.Notes = append(a.Notes, "the file's lines end with CR LF, and so do those of the new text")
		}
	}
	switch {
	case len(at) == 0:
		return nil, notThere(name, content, before)
	case len(at) > 1 && !all:
		return nil, fault.New(fault.Conflict, "old_text is %d times in %s, at %s", len(at), name, atLines(content, at)).
			WithRemedy("give more of the lines around the one that is meant, or set replace_all to true to change them all")
	}
	changed := strings.ReplaceAll(content, before, after)
	if len(changed) > toolset.MaxWrite {
		return nil, fault.New(fault.TooLarge, "%s would have %d bytes, more than %d", name, len(changed), toolset.MaxWrite).WithRemedy("use run_command with sed or python3")
	}
	if err := unchanged(ctx, c, ref, path, &info); err != nil {
		return nil, err
	}
	o := sandbox.WriteFileOptions{Size: int64(len(changed))}
	if _, _, err := c.Files.WriteFile(ctx, c.Caller, ref, path, strings.NewReader(changed), o); err != nil {
		return nil, c.PathError(ctx, ref, path, err)
	}
	diff := toolset.Cut(unified(content, before, after, at), "", 0, 0, maxDiff)
	out := &toolset.Answer{Verdict: fmt.Sprintf("edited %s: %s · %d bytes · sandbox %s", name, toolset.Counted(len(at), "place", "places"), len(changed), ref)}
	out.Sections = []toolset.Section{{Title: "diff", Body: toolset.Clean([]byte(diff.Text))}}
	return out, nil
}

// whole reads a text file that is small enough to be written again.
func whole(ctx context.Context, c *toolset.Call, ref, path string) (sandbox.FileInfo, string, error) {
	info, body, err := c.Files.ReadFile(ctx, c.Caller, ref, path, sandbox.ReadFileOptions{})
	if err != nil {
		return info, "", c.PathError(ctx, ref, path, err)
	}
	defer body.Close()
	if err := c.Reserve(ctx, min(info.Size, toolset.MaxWrite)); err != nil {
		return info, "", err
	}
	data, err := io.ReadAll(io.LimitReader(body, toolset.MaxWrite+1))
	switch name := toolset.PrintablePath(info.Path); {
	case err != nil:
		return info, "", err
	case len(data) > toolset.MaxWrite:
		return info, "", fault.New(fault.TooLarge, "%s has %d bytes, and edit_file changes files of at most %d", name, max(info.Size, int64(len(data))), toolset.MaxWrite).
			WithRemedy("use run_command with sed or python3")
	case toolset.IsBinary(data[:min(len(data), sniffed)], len(data) > sniffed):
		return info, "", fault.New(fault.Unsupported, "%s is a binary file of %d bytes, and edit_file changes text only", name, len(data)).
			WithRemedy("use run_command with python3, or write_file with encoding base64; get_file_url gives a link to it")
	}
	return info, string(data), nil
}

// unchanged tells that a file is as it was when it was read. Between this and the
// write there is a moment, which the file API cannot close.
func unchanged(ctx context.Context, c *toolset.Call, ref, path string, was *sandbox.FileInfo) error {
	now, body, err := c.Files.ReadFile(ctx, c.Caller, ref, path, sandbox.ReadFileOptions{Length: 1})
	if err == nil {
		_ = body.Close() // nothing was read
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	if err != nil || now.Size != was.Size || !now.ModTime.Equal(was.ModTime) {
		return fault.New(fault.Conflict, "%s was changed by somebody else while it was edited; nothing was written", toolset.PrintablePath(was.Path)).
			WithRemedy("read_file shows it as it is now; then edit it again")
	}
	return nil
}

func asCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// places returns where a text is in another, without overlaps.
func places(content, what string) []int {
	var at []int
	for from := 0; ; {
		i := strings.Index(content[from:], what)
		if i < 0 {
			return at
		}
		at = append(at, from+i)
		from += i + len(what)
	}
}

// atLines names the lines of places.
func atLines(content string, at []int) string {
	const most = 10
	out := "lines "
	line, from := 1, 0
	for i, p := range at {
		if i == most {
			return out + " …"
		}
		line += strings.Count(content[from:p], "\n")
		from = p
		if i > 0 {
			out += ", "
		}
		out += fmt.Sprint(line)
	}
	return out
}

// notThere says what is most like a text that is not in a file.
func notThere(name, content, what string) error {
	n := nearestLines(content, what)
	if n == nil {
		return fault.New(fault.NotFound, "old_text is 0 times in %s, and nothing there is like it", name).
			WithRemedy("read_file shows what is in the file; search_files finds where a text is")
	}
	return fault.New(fault.NotFound, "old_text is 0 times in %s; most like it are the lines %d to %d (- is old_text, + is the file):\n%s",
		name, n.first, n.first+n.count-1, n.diff).
		WithRemedy("call edit_file again with old_text as it is in the file; white space counts, and line numbers of read_file are no part of it")
}

// Bounds of the look for what is most like a text.
const (
	nearLines = 60     // of the text that are compared
	nearFile  = 20_000 // lines of the file
	nearShown = 30     // lines of the difference
	nearWide  = 200    // bytes of a line that are compared letter by letter
)

// nearLinesFound is the place in a file that is most like a text.
type nearLinesFound struct {
	first, count int // the first line is 1
	diff         string
}

// nearestLines finds the lines of a file that are most like a text; nil if none is.
func nearestLines(content, what string) *nearLinesFound {
	have, want := splitLines(content), splitLines(what)
	have, want = have[:min(len(have), nearFile)], want[:min(len(want), nearLines)]
	if len(have) == 0 || len(want) == 0 {
		return nil
	}
	plainHave, plainWant := trimmed(have), trimmed(want)
	best, most := -1, 0
	for i := range have {
		score := 0
		for j, w := range plainWant {
			if i+j < len(have) && w != "" && w == plainHave[i+j] {
				score += 1 + min(len(w), 40) // a long line says more than a brace
			}
		}
		if score > most {
			best, most = i, score
		}
	}
	if best < 0 {
		best = likeliest(plainHave, plainWant)
	}
	if best < 0 {
		return nil
	}
	n := &nearLinesFound{first: best + 1, count: min(len(want), len(have)-best)}
	n.diff = difference(want, have[best:best+n.count])
	return n
}

// likeliest finds the line that is nearest in spelling to the first that is not
// empty; below zero if none is near.
func likeliest(have, want []string) int {
	lead := 0
	for lead < len(want) && want[lead] == "" {
		lead++
	}
	if lead == len(want) || len(want[lead]) > nearWide {
		return -1
	}
	w := want[lead]
	best, least := -1, len(w)/3+1
	for i, h := range have {
		if h == "" || len(h) > nearWide || len(h)-len(w) >= least || len(w)-len(h) >= least {
			continue
		}
		if d := spelling.Distance(h, w); d < least {
			best, least = i, d
		}
	}
	return max(best-lead, min(best, 0))
}

func trimmed(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = strings.TrimSpace(l)
	}
	return out
}

// difference shows line by line what differs.
func difference(want, have []string) string {
	var out []string
	for i := range max(len(want), len(have)) {
		var w, h string
		if i < len(want) {
			w = visible(want[i])
		}
		if i < len(have) {
			h = visible(have[i])
		}
		switch {
		case i < len(want) && i < len(have) && w == h:
			out = append(out, "  "+h)
			continue
		case i < len(want):
			out = append(out, "- "+w)
		}
		if i < len(have) {
			out = append(out, "+ "+h)
		}
	}
	if len(out) > nearShown {
		out = append(out[:nearShown], "…")
	}
	return strings.Join(out, "\n")
}

// visible is a line on which tabs and spaces at the end can be told.
func visible(l string) string {
	l = strings.TrimSuffix(toolset.Clean([]byte(strings.TrimSuffix(strings.TrimSuffix(l, "\n"), "\r"))), "\n")
	body := strings.TrimRight(l, " ")
	l = strings.ReplaceAll(body, "\t", "→") + strings.Repeat("·", len(l)-len(body))
	if toolset.Runes(l) > nearWide {
		l = toolset.FirstRunes(l, nearWide) + "…"
	}
	return l
}
