// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// mostEntries is how many entries of a directory a profile's tool lists.
const mostEntries = 1000

func orkestrWrite() tool {
	return tool{
		name: "write_file", title: "Write a file", destructive: true, idempotent: true,
		about: "Write a text file into a sandbox, at most 8 MiB, replacing what was there. Missing directories are made.",
		params: []param{
			orkestrWords().which(),
			paramPath("The file."),
			{name: "content", kind: text, required: true, about: "The whole content.", aliases: []string{"contents", "text", "data"}},
		},
		example: `{"sandbox_id": "an-id", "path": "hello.py", "content": "print('hello')\n"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			w := orkestrWords()
			w.in(c)
			info, err := w.put(ctx, c, c.args.text("path"), c.args.text("content"))
			if err != nil {
				return nil, err
			}
			return orkestrHandle(orkestrWritten{info.Path, info.Size})
		},
	}
}

// put writes a file, unless an argument is wrong.
func (w *words) put(ctx context.Context, c *call, path, content string) (agent.FileInfo, error) {
	if len(content) > maxWrite {
		c.args.add("content", "has %d bytes, more than %d; write it in parts with %s", len(content), maxWrite, w.shell)
	}
	if err := c.args.err(); err != nil {
		return agent.FileInfo{}, err
	}
	info, _, err := c.engine.WriteFile(ctx, c.Caller, c.ref, path, strings.NewReader(content), agent.WriteOptions{
		MakeParents: true, Size: int64(len(content)),
	})
	if err != nil {
		return info, w.pathError(ctx, c, path, err)
	}
	return info, nil
}

type orkestrWritten struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

func orkestrRead() tool {
	return tool{
		name: "read_file", title: "Read a file", readOnly: true, idempotent: true,
		about:   fmt.Sprintf("Read a text file from a sandbox: its first %d characters, and whether that is all.", readShown),
		params:  []param{orkestrWords().which(), paramPath("The file.")},
		example: `{"sandbox_id": "an-id", "path": "hello.py"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			w := orkestrWords()
			w.in(c)
			path := c.args.text("path")
			if err := c.args.err(); err != nil {
				return nil, err
			}
			f, err := w.get(ctx, c, path, utf8.UTFMax*readShown)
			if err != nil {
				return nil, err
			}
			if f.binary {
				return nil, fault.New(fault.Unsupported, "%s is not text (%d bytes)", printablePath(f.info.Path), f.info.Size).
					WithRemedy("look into it with run_shell (file, xxd, base64)")
			}
			content := firstRunes(string(f.data), readShown)
			return inJSON(orkestrText{
				Path: f.info.Path, Content: content, Size: f.info.Size, Truncated: int64(len(content)) < f.info.Size,
			}, "")
		},
	}
}

type orkestrText struct {
	Path      string `json:"path"`
	Content   string `json:"content"`
	Size      int64  `json:"size"`                // in bytes, of the file
	Truncated bool   `json:"truncated,omitempty"` // the file goes on
}

// got is the beginning of a file.
type got struct {
	info   agent.FileInfo
	data   []byte // without a character that its end would cut
	binary bool
}

// get reads the first bytes of a file, at most most.
func (w *words) get(ctx context.Context, c *call, path string, most int) (got, error) {
	info, body, err := c.engine.ReadFile(ctx, c.Caller, c.ref, path, agent.ReadOptions{})
	if err != nil {
		return got{}, w.pathError(ctx, c, path, err)
	}
	defer body.Close()
	if err := c.Reserve(ctx, min(info.Size, int64(most))); err != nil {
		return got{}, err
	}
	data, err := io.ReadAll(io.LimitReader(body, int64(most)))
	if err != nil {
		return got{}, err
	}
	whole := len(data) < most
	f := got{info: info, data: data, binary: isBinary(data, !whole)}
	for cut := 1; !whole && !f.binary && cut < utf8.UTFMax && cut <= len(data); cut++ {
		if last := data[len(data)-cut:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				f.data = data[:len(data)-cut]
			}
			break
		}
	}
	return f, nil
}

func orkestrList() tool {
	return tool{
		name: "list_files", title: "List a directory", readOnly: true, idempotent: true,
		about: fmt.Sprintf("List the entries of a directory in a sandbox, at most %d.", mostEntries),
		params: []param{
			orkestrWords().which(),
			{name: "path", kind: text, about: "Directory, default /workspace.", aliases: []string{"dir", "directory"}},
		},
		example: `{"sandbox_id": "an-id", "path": "src"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			w := orkestrWords()
			w.in(c)
			files, more, err := w.list(ctx, c)
			if err != nil {
				return nil, err
			}
			out := orkestrFolder{Path: absolute(c.args.text("path")), Entries: make([]orkestrEntry, 0, len(files)), Truncated: more}
			for _, f := range files {
				out.Entries = append(out.Entries, orkestrEntry{f.Name, string(f.Type), f.Size, timeText(f.ModTime)})
			}
			return orkestrHandle(out)
		},
	}
}

// list lists the directory of the argument path, unless an argument is wrong.
func (w *words) list(ctx context.Context, c *call) ([]agent.FileInfo, bool, error) {
	dir := c.args.text("path")
	if dir == "" {
		dir = sandbox.Workspace
	}
	if err := c.args.err(); err != nil {
		return nil, false, err
	}
	files, more, err := c.engine.ListFiles(ctx, c.Caller, c.ref, dir, agent.ListOptions{Limit: mostEntries})
	if err != nil {
		return nil, false, w.pathError(ctx, c, dir, err)
	}
	return files, more, nil
}

type orkestrFolder struct {
	Path      string         `json:"path"`
	Entries   []orkestrEntry `json:"entries"`
	Truncated bool           `json:"truncated,omitempty"` // it has more
}

type orkestrEntry struct {
	Name     string `json:"name"`
	Type     string `json:"type"` // file, dir, symlink or other
	Size     int64  `json:"size"`
	Modified string `json:"modified_at"`
}
