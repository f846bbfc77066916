// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"io"
	"strings"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
)

func editFile() tool {
	return tool{
		name: "edit_file", title: "Edit a file", destructive: true,
		about: "Replace a text in a file of a sandbox. old_text must be in the file exactly once, with its white space, unless replace_all is true. Returns the change as a diff.",
		params: []param{
			paramPath("The file."),
			{name: "old_text", kind: text, required: true, about: "What is there, with enough lines around it to be the only one.", aliases: []string{"old_string", "old_str", "search", "old"}},
			{name: "new_text", kind: text, required: true, about: "What is to be there.", aliases: []string{"new_string", "new_str", "replace", "replacement", "new"}},
			paramSandbox(),
			{name: "replace_all", kind: boolean, about: "Replace every place. Default false."},
		},
		example: `{"path": "src/main.py", "old_text": "x = 1\n", "new_text": "x = 2\n"}`,
		run:     edit,
	}
}

// maxDiff bounds the diff of an answer, in characters.
const maxDiff = 12_000

func edit(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	path, before, after, all := a.text("path"), a.text("old_text"), a.text("new_text"), a.bool("replace_all", false)
	switch {
	case before == "" && a.has("old_text"):
		a.add("old_text", "is empty; write_file writes a whole file")
	case before == after && a.has("new_text"):
		a.add("new_text", "is the same as old_text: there is nothing to change")
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	ref, err := c.place(ctx, false)
	if err != nil {
		return nil, err
	}
	info, content, err := c.whole(ctx, ref, path)
	if err != nil {
		return nil, err
	}
	name := printablePath(info.Path)
	at := places(content, before)
	if len(at) == 0 && strings.Contains(content, "\r\n") { // models do not see how lines end
		if crlf := places(content, asCRLF(before)); len(crlf) > 0 {
			at, before, after = crlf, asCRLF(before), asCRLF(after)
			a.notes = append(a.notes, "the file's lines end with CR LF, and so do those of the new text")
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
	if len(changed) > maxWrite {
		return nil, fault.New(fault.TooLarge, "%s would have %d bytes, more than %d", name, len(changed), maxWrite).WithRemedy("use run_command with sed or python3")
	}
	if err := c.unchanged(ctx, ref, path, &info); err != nil {
		return nil, err
	}
	o := agent.WriteOptions{Size: int64(len(changed))}
	if _, _, err := c.engine.WriteFile(ctx, c.Caller, ref, path, strings.NewReader(changed), o); err != nil {
		return nil, c.pathError(ctx, ref, path, err)
	}
	diff := cut(unified(content, before, after, at), "", 0, 0, maxDiff)
	out := &answer{verdict: fmt.Sprintf("edited %s: %s · %d bytes · sandbox %s", name, counted(len(at), "place", "places"), len(changed), ref)}
	out.sections = []section{{"diff", clean([]byte(diff.text))}}
	return out, nil
}

// whole reads a text file that is small enough to be written again.
func (c *call) whole(ctx context.Context, ref, path string) (agent.FileInfo, string, error) {
	info, body, err := c.engine.ReadFile(ctx, c.Caller, ref, path, agent.ReadOptions{})
	if err != nil {
		return info, "", c.pathError(ctx, ref, path, err)
	}
	defer body.Close()
	if err := c.Reserve(ctx, min(info.Size, maxWrite)); err != nil {
		return info, "", err
	}
	data, err := io.ReadAll(io.LimitReader(body, maxWrite+1))
	switch name := printablePath(info.Path); {
	case err != nil:
		return info, "", err
	case len(data) > maxWrite:
		return info, "", fault.New(fault.TooLarge, "%s has %d bytes, and edit_file changes files of at most %d", name, max(info.Size, int64(len(data))), maxWrite).
			WithRemedy("use run_command with sed or python3")
	case isBinary(data[:min(len(data), sniffed)], len(data) > sniffed):
		return info, "", fault.New(fault.Unsupported, "%s is a binary file of %d bytes, and edit_file changes text only", name, len(data)).
			WithRemedy("use run_command with python3, or write_file with encoding base64; get_file_url gives a link to it")
	}
	return info, string(data), nil
}

// unchanged tells that a file is as it was when it was read. Between this and the
// write there is a moment, which the file API cannot close.
func (c *call) unchanged(ctx context.Context, ref, path string, was *agent.FileInfo) error {
	now, body, err := c.engine.ReadFile(ctx, c.Caller, ref, path, agent.ReadOptions{Length: 1})
	if err == nil {
		_ = body.Close() // nothing was read
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	if err != nil || now.Size != was.Size || !now.ModTime.Equal(was.ModTime) {
		return fault.New(fault.Conflict, "%s was changed by somebody else while it was edited; nothing was written", printablePath(was.Path)).
			WithRemedy("read_file shows it as it is now; then edit it again")
	}
	return nil
}

func asCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// places gives where a text is in another, without overlaps.
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
