// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// octal shows permissions like 0644.
func octal(m fs.FileMode) string { return fmt.Sprintf("%04o", m.Perm()) }

// account names a user or a group of the images.
func account(id int) string {
	switch id {
	case 0:
		return "root"
	case 1000:
		return "sandbox"
	}
	return strconv.Itoa(id)
}

func list() toolset.Tool {
	return toolset.Tool{
		Name: "list_files", Title: "List a directory", ReadOnly: true, Idempotent: true,
		About: fmt.Sprintf("List the files in a directory of a sandbox, at most %d.", toolset.MostEntries),
		Params: []toolset.Param{
			words().Which(),
			{Name: "path", Kind: toolset.Text, About: "Directory, default /workspace.", Aliases: []string{"dir", "directory"}},
		},
		Example: `{"id": "an-id", "path": "src"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			w := words()
			w.In(c)
			files, more, err := w.ListFiles(ctx, c)
			if err != nil {
				return nil, err
			}
			out := make([]file, 0, len(files))
			for i := range files {
				out = append(out, fileOf(&files[i]))
			}
			ans, err := toolset.JSONAnswer(out, "  ")
			if err == nil && more {
				ans.Notes = append(ans.Notes, fmt.Sprintf("there are more than %d; execute_command with find or ls shows them", toolset.MostEntries))
			}
			return ans, err
		},
	}
}

func folder() toolset.Tool {
	return toolset.Tool{
		Name: "create_folder", Title: "Create a folder", Idempotent: true,
		About: "Create a folder in a sandbox, and those above it that are missing.",
		Params: []toolset.Param{
			words().Which(),
			paramFile("folderPath", "The folder.", "folder_path"),
			{Name: "mode", Kind: toolset.Text, About: "Permissions in octal, default 0755."},
		},
		Example: `{"id": "an-id", "folderPath": "src/app"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			w := words()
			w.In(c)
			path, mode := needs(c.Args, "folderPath"), fs.FileMode(0o755)
			if s := c.Args.Text("mode"); s != "" {
				n, err := strconv.ParseUint(strings.TrimPrefix(s, "0o"), 8, 32)
				if err != nil || n > 0o777 || n == 0 {
					c.Args.Add("mode", "%q is not a valid octal permission between 1 and 0777", toolset.Clip(s))
				}
				mode = fs.FileMode(n)
			}
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			if err := c.Files.MakeDir(ctx, c.Caller, c.Ref, path, sandbox.MakeDirOptions{Parents: true, Mode: mode}); err != nil {
				return nil, w.PathError(ctx, c, path, err)
			}
			return toolset.TextAnswer("Created folder: " + toolset.PrintablePath(path)), nil
		},
	}
}

func move() toolset.Tool {
	return toolset.Tool{
		Name: "move_file", Title: "Move a file", Destructive: true,
		About: "Move or rename a file or a directory in a sandbox. What is at the destination is not replaced.",
		Params: []toolset.Param{
			words().Which(),
			paramFile("sourcePath", "From where.", "source_path", "source"),
			{Name: "destPath", Kind: toolset.Text, Required: true, Field: "to", About: "Its new path.", Aliases: []string{"dest_path", "destination"}},
		},
		Example: `{"id": "an-id", "sourcePath": "old.py", "destPath": "new.py"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			w := words()
			w.In(c)
			from, to := needs(c.Args, "sourcePath"), needs(c.Args, "destPath")
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			if err := c.Files.MoveFile(ctx, c.Caller, c.Ref, from, to, sandbox.MoveFileOptions{}); err != nil {
				return nil, w.PathError(ctx, c, from, err)
			}
			return toolset.TextAnswer(fmt.Sprintf("Moved file from %s to %s", toolset.PrintablePath(from), toolset.PrintablePath(to))), nil
		},
	}
}

func remove() toolset.Tool {
	remove := func(ctx context.Context, c *toolset.Call, w *toolset.Words, path string) (*toolset.Answer, error) {
		output := ""
		err := c.Files.RemoveFile(ctx, c.Caller, c.Ref, path, sandbox.RemoveFileOptions{Recursive: true})
		switch {
		case fault.Is(err, fault.NotFound) && !c.Gone(ctx):
			output = "there was nothing"
		case err != nil:
			return nil, w.PathError(ctx, c, path, err)
		}
		return toolset.TextAnswer("Deleted file: " + toolset.PrintablePath(path) + "\nOutput: " + output), nil
	}
	return ofFile("The file or directory.", remove, toolset.Tool{
		Name: "delete_file", Title: "Delete a file", Destructive: true, Idempotent: true,
		About:   "Delete a file, or a directory with all in it. It is no error if there is none.",
		Example: `{"id": "an-id", "filePath": "build"}`,
	})
}
