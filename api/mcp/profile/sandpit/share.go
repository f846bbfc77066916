// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/filelink"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func changeFile() toolset.Tool {
	return toolset.Tool{
		Name: "change_file", Title: "Change a file's mode, owner or attributes", Destructive: true, Idempotent: true,
		About: "Change mode, owner, group or attributes of a file, or of a tree, and tell all about it. Links are never followed.",
		Params: []toolset.Param{
			toolset.PathParam("The file."),
			paramSandbox(),
			{Name: "mode", Kind: toolset.Text, About: "Octal, like 755."},
			{Name: "owner", Kind: toolset.Text, About: "Name or number; takes as_user root."},
			{Name: "group", Kind: toolset.Text, About: "Name or number."},
			{Name: "attributes", Kind: toolset.Texts, About: "Text to keep with the file; an empty value removes one."},
			{Name: "recursive", Kind: toolset.Boolean, About: "Default false."},
			{Name: "as_user", Kind: toolset.Text, About: "Default sandbox; any account.", Aliases: []string{"user"}},
		},
		Example: `{"path": "run.sh", "mode": "755"}`,
		Run:     changeOf,
	}
}

func changeOf(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	p, mode := a.Text("path"), a.Text("mode")
	o := sandbox.ChangeFileOptions{User: a.Text("as_user"), Owner: a.Text("owner"), Group: a.Text("group"), Recursive: a.Bool("recursive", false)}
	for key, value := range a.Env("attributes") {
		if value == "" {
			o.Remove = append(o.Remove, key)
			continue
		}
		if o.Attributes == nil {
			o.Attributes = make(map[string]string)
		}
		o.Attributes[key] = value
	}
	if mode != "" {
		n, err := strconv.ParseUint(strings.TrimPrefix(mode, "0o"), 8, 32)
		if err != nil || n > 0o777 {
			a.Add("mode", "%q is not a valid octal permission up to 777", toolset.Clip(mode))
		}
		m := fs.FileMode(n)
		o.Mode = &m
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	done, err := c.Files.ChangeFile(ctx, c.Caller, ref, p, o)
	if err != nil {
		return nil, c.PathError(ctx, ref, p, err)
	}
	f := &done.File
	out := &toolset.Answer{
		Verdict: fmt.Sprintf("changed %s · sandbox %s", toolset.Counted(int(done.Changed), "file or directory", "files and directories"), ref),
		Lines:   []string{fmt.Sprintf("%s · %s, mode %o, owner %s, group %s", toolset.PrintablePath(f.Path), f.Type, f.Mode.Perm(), whose(f.Owner, f.UID), whose(f.Group, f.GID))},
	}
	for _, key := range slices.Sorted(maps.Keys(f.Attributes)) {
		out.Lines = append(out.Lines, toolset.Clean([]byte("attribute "+key+"="+toolset.Clip(f.Attributes[key]))))
	}
	for _, l := range done.Left[:min(len(done.Left), 10)] {
		out.Notes = append(out.Notes, fmt.Sprintf("not changed: %s: %s", toolset.PrintablePath(l.Path), l.Reason))
	}
	if done.LeftAll > 0 || done.Ended != "" {
		out.Notes = append(out.Notes, fmt.Sprintf("%d were not changed%s", done.LeftAll, early(done.Ended)))
	}
	return out, nil
}

func early(why string) string {
	if why == "" {
		return ""
	}
	return ", and not all was seen: there is too much (" + why + ")"
}

func whose(name string, id int) string {
	if name == "" {
		return strconv.Itoa(id)
	}
	return name
}

func replaceInFiles() toolset.Tool {
	return toolset.Tool{
		Name: "replace_in_files", Title: "Replace text in files", Destructive: true,
		About: "Replace a text, or what matches a regular expression (RE2), in all places of up to 1000 files. Each file is replaced whole or stays as it was.",
		Params: []toolset.Param{
			{Name: "files", Kind: toolset.Text, Required: true, About: "Paths, as a list or with commas between.", Aliases: []string{"paths"}},
			{Name: "pattern", Kind: toolset.Text, Required: true, About: "A text, or with regex an expression for whole files."},
			{Name: "replacement", Kind: toolset.Text, Required: true, About: "With regex, $1 is a group.", Aliases: []string{"new_value"}},
			paramSandbox(),
			{Name: "regex", Kind: toolset.Boolean, About: "Default false."},
			{Name: "ignore_case", Kind: toolset.Boolean, About: "Default false."},
		},
		Example: `{"files": "main.py,config.py", "pattern": "localhost", "replacement": "0.0.0.0"}`,
		Run:     replaceIn,
	}
}

func replaceIn(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	paths := a.List("files")
	o := sandbox.ReplaceFilesOptions{Pattern: a.Text("pattern"), Replacement: a.Text("replacement"), Regexp: a.Bool("regex", false), IgnoreCase: a.Bool("ignore_case", false)}
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	done, err := c.Files.ReplaceInFiles(ctx, c.Caller, ref, paths, o)
	if err != nil {
		return nil, err
	}
	out := new(toolset.Answer)
	var total int64
	changed := 0
	for _, f := range done {
		line := toolset.PrintablePath(f.Path) + ": " + strconv.FormatInt(f.Count, 10)
		if f.Err != nil {
			line = toolset.PrintablePath(f.Path) + ": not changed: " + oneLineOf(fault.As(f.Err).Message)
		}
		if f.Count > 0 {
			changed++
		}
		total += f.Count
		out.Lines = append(out.Lines, line)
	}
	out.Verdict = fmt.Sprintf("%s in %d of %s · sandbox %s", toolset.Counted(int(total), "replacement", "replacements"), changed, toolset.Counted(len(done), "file", "files"), ref)
	return out, nil
}

func getUploadURL() toolset.Tool {
	return toolset.Tool{
		Name: "get_upload_url", Title: "Get a link to write a file",
		About: "Get an HTTP link by which the user or curl can write one file of a sandbox with PUT, without a token, until it expires.",
		Params: []toolset.Param{
			toolset.PathParam("The file."),
			paramSandbox(),
			{Name: "expires_minutes", Kind: toolset.Number, Min: filelink.MinLife.Minutes(), Max: filelink.MaxLife.Minutes(), About: "1 to 10080, default 60."},
			{Name: "max_mb", Kind: toolset.Integer, Min: 1, Max: filelink.MaxMost >> 20, About: "The most that is taken, default 100."},
		},
		Example: `{"path": "data.csv"}`,
		Run:     linkUpload,
	}
}

func linkUpload(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	p, life := sandbox.Account{}.Absolute(a.Text("path")), a.Number("expires_minutes", filelink.DefaultLife.Minutes())
	most := int64(a.Number("max_mb", filelink.DefaultMost>>20)) << 20
	if strings.HasSuffix(a.Text("path"), "/") || path.Base(p) == "/" {
		a.Add("path", "%q is a directory's", toolset.Clip(a.Text("path")))
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	if err := c.Caller.Require(access.SandboxesWrite); err != nil { // a link outlives tokens of one sandbox
		return nil, err
	}
	ref, err := place(ctx, c, true)
	if err != nil {
		return nil, err
	}
	s, err := c.Sandboxes.Get(ctx, c.Caller, ref)
	if err != nil {
		return nil, err
	}
	p = s.Account.Absolute(a.Text("path"))
	if c.Links == nil || c.Address == nil {
		return nil, fault.New(fault.Unsupported, "this server makes no links to files").WithRemedy("write_file writes up to 8 MiB")
	}
	until := time.Now().Add(time.Duration(life * float64(time.Minute))).Truncate(time.Second)
	address := c.Links.Address(c.Address, filelink.Grant{Write: true, Most: most, Project: s.Project, Sandbox: string(s.ID), Path: p, Expires: until})
	return &toolset.Answer{
		Verdict: fmt.Sprintf("%s can be written by PUT, up to %s · sandbox %s", toolset.PrintablePath(p), toolset.BytesText(most), ref),
		Lines:   []string{address, "good until " + toolset.TimeText(until) + " for whoever has it: curl -T FILE 'URL'"},
	}, nil
}
