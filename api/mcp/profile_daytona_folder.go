// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
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

func daytonaList() tool {
	return tool{
		name: "list_files", title: "List a directory", readOnly: true, idempotent: true,
		about: fmt.Sprintf("List the files in a directory of a sandbox, at most %d.", mostEntries),
		params: []param{
			daytonaWords().which(),
			{name: "path", kind: text, about: "Directory, default /workspace.", aliases: []string{"dir", "directory"}},
		},
		example: `{"id": "an-id", "path": "src"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			w := daytonaWords()
			w.in(c)
			files, more, err := w.list(ctx, c)
			if err != nil {
				return nil, err
			}
			out := make([]daytonaFile, 0, len(files))
			for i := range files {
				out = append(out, daytonaFileOf(&files[i]))
			}
			ans, err := inJSON(out, "  ")
			if err == nil && more {
				ans.notes = append(ans.notes, fmt.Sprintf("there are more than %d; execute_command with find or ls shows them", mostEntries))
			}
			return ans, err
		},
	}
}

func daytonaFolder() tool {
	return tool{
		name: "create_folder", title: "Create a folder", idempotent: true,
		about: "Create a folder in a sandbox, and those above it that are missing.",
		params: []param{
			daytonaWords().which(),
			paramFile("folderPath", "The folder.", "folder_path"),
			{name: "mode", kind: text, about: "Permissions in octal, default 0755."},
		},
		example: `{"id": "an-id", "folderPath": "src/app"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			w := daytonaWords()
			w.in(c)
			path, mode := c.args.needs("folderPath"), fs.FileMode(0o755)
			if s := c.args.text("mode"); s != "" {
				n, err := strconv.ParseUint(strings.TrimPrefix(s, "0o"), 8, 32)
				if err != nil || n > 0o777 || n == 0 {
					c.args.add("mode", "%q is not a valid octal permission between 1 and 0777", clip(s))
				}
				mode = fs.FileMode(n)
			}
			if err := c.args.err(); err != nil {
				return nil, err
			}
			if err := c.engine.MakeDir(ctx, c.Caller, c.ref, path, agent.MkdirOptions{Parents: true, Mode: mode}); err != nil {
				return nil, w.pathError(ctx, c, path, err)
			}
			return inText("Created folder: " + printablePath(path)), nil
		},
	}
}

func daytonaMove() tool {
	return tool{
		name: "move_file", title: "Move a file", destructive: true,
		about: "Move or rename a file or a directory in a sandbox. What is at the destination is not replaced.",
		params: []param{
			daytonaWords().which(),
			paramFile("sourcePath", "From where.", "source_path", "source"),
			{name: "destPath", kind: text, required: true, field: "to", about: "Its new path.", aliases: []string{"dest_path", "destination"}},
		},
		example: `{"id": "an-id", "sourcePath": "old.py", "destPath": "new.py"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			w := daytonaWords()
			w.in(c)
			from, to := c.args.needs("sourcePath"), c.args.needs("destPath")
			if err := c.args.err(); err != nil {
				return nil, err
			}
			if err := c.engine.MoveFile(ctx, c.Caller, c.ref, from, to, agent.MoveOptions{}); err != nil {
				return nil, w.pathError(ctx, c, from, err)
			}
			return inText(fmt.Sprintf("Moved file from %s to %s", printablePath(from), printablePath(to))), nil
		},
	}
}

func daytonaDelete() tool {
	remove := func(ctx context.Context, c *call, w *words, path string) (*answer, error) {
		output := ""
		err := c.engine.RemoveFile(ctx, c.Caller, c.ref, path, agent.RemoveOptions{Recursive: true})
		switch {
		case fault.Is(err, fault.NotFound) && !c.gone(ctx):
			output = "there was nothing"
		case err != nil:
			return nil, w.pathError(ctx, c, path, err)
		}
		return inText("Deleted file: " + printablePath(path) + "\nOutput: " + output), nil
	}
	return daytonaOfFile("The file or directory.", remove, tool{
		name: "delete_file", title: "Delete a file", destructive: true, idempotent: true,
		about:   "Delete a file, or a directory with all in it. It is no error if there is none.",
		example: `{"id": "an-id", "filePath": "build"}`,
	})
}
