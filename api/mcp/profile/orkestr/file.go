// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"context"
	"fmt"
	"unicode/utf8"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/fault"
)

func write() toolset.Tool {
	return toolset.Tool{
		Name: "write_file", Title: "Write a file", Destructive: true, Idempotent: true,
		About: "Write a text file into a sandbox, at most 8 MiB, replacing what was there. Missing directories are made.",
		Params: []toolset.Param{
			words().Which(),
			toolset.PathParam("The file."),
			{Name: "content", Kind: toolset.Text, Required: true, About: "The whole content.", Aliases: []string{"contents", "text", "data"}},
		},
		Example: `{"sandbox_id": "an-id", "path": "hello.py", "content": "print('hello')\n"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			w := words()
			w.In(c)
			info, err := w.WriteFile(ctx, c, c.Args.Text("path"), c.Args.Text("content"))
			if err != nil {
				return nil, err
			}
			return handle(written{info.Path, info.Size})
		},
	}
}

type written struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

func read() toolset.Tool {
	return toolset.Tool{
		Name: "read_file", Title: "Read a file", ReadOnly: true, Idempotent: true,
		About:   fmt.Sprintf("Read a text file from a sandbox: its first %d characters, and whether that is all.", toolset.ReadShown),
		Params:  []toolset.Param{words().Which(), toolset.PathParam("The file.")},
		Example: `{"sandbox_id": "an-id", "path": "hello.py"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			w := words()
			w.In(c)
			path := c.Args.Text("path")
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			f, err := w.ReadFile(ctx, c, path, utf8.UTFMax*toolset.ReadShown)
			if err != nil {
				return nil, err
			}
			if f.Binary {
				return nil, fault.New(fault.Unsupported, "%s is not text (%d bytes)", toolset.PrintablePath(f.Info.Path), f.Info.Size).
					WithRemedy("look into it with run_shell (file, xxd, base64)")
			}
			content := toolset.FirstRunes(string(f.Data), toolset.ReadShown)
			return toolset.JSONAnswer(text{
				Path: f.Info.Path, Content: content, Size: f.Info.Size, Truncated: int64(len(content)) < f.Info.Size,
			}, "")
		},
	}
}

type text struct {
	Path      string `json:"path"`
	Content   string `json:"content"`
	Size      int64  `json:"size"`                // in bytes, of the file
	Truncated bool   `json:"truncated,omitempty"` // the file goes on
}

func list() toolset.Tool {
	return toolset.Tool{
		Name: "list_files", Title: "List a directory", ReadOnly: true, Idempotent: true,
		About: fmt.Sprintf("List the entries of a directory in a sandbox, at most %d.", toolset.MostEntries),
		Params: []toolset.Param{
			words().Which(),
			{Name: "path", Kind: toolset.Text, About: "Directory, default /workspace.", Aliases: []string{"dir", "directory"}},
		},
		Example: `{"sandbox_id": "an-id", "path": "src"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			w := words()
			w.In(c)
			files, more, err := w.ListFiles(ctx, c)
			if err != nil {
				return nil, err
			}
			out := folder{Path: c.Absolute(ctx, c.Ref, c.Args.Text("path")), Entries: make([]entry, 0, len(files)), Truncated: more}
			for _, f := range files {
				out.Entries = append(out.Entries, entry{f.Name, string(f.Type), f.Size, toolset.TimeText(f.ModTime)})
			}
			return handle(out)
		},
	}
}

type folder struct {
	Path      string  `json:"path"`
	Entries   []entry `json:"entries"`
	Truncated bool    `json:"truncated,omitempty"` // it has more
}

type entry struct {
	Name     string `json:"name"`
	Type     string `json:"type"` // file, dir, symlink or other
	Size     int64  `json:"size"`
	Modified string `json:"modified_at"`
}
