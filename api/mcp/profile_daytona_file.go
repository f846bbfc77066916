// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/agent"
	"sandpit.dev/api/filelink"
	"sandpit.dev/fault"
)

// mostDownload is how many bytes of text a download gives to a model.
const mostDownload = 256 << 10

func daytonaUpload() tool {
	return tool{
		name: "file_upload", title: "Upload a file", destructive: true, idempotent: true,
		about: "Write a file in a sandbox, of text or of base64, at most 8 MiB. Missing directories are made.",
		params: []param{
			daytonaWords().which(),
			paramFile("filePath", "The file; below /tmp unless the user says otherwise.", "file_path"),
			{name: "content", kind: text, required: true, about: "The whole content."},
			{name: "encoding", kind: text, required: true, about: "Of content: base64, or text."},
			{name: "overwrite", kind: boolean, required: true, about: "Replace a file that is there; else that is an error."},
		},
		example: `{"id": "an-id", "filePath": "/tmp/hello.py", "content": "print('hello')\n", "encoding": "text", "overwrite": true}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			a, w := c.args, daytonaWords()
			w.in(c)
			path, content, replace := a.needs("filePath"), a.text("content"), a.bool("overwrite", false)
			if a.text("encoding") == "base64" {
				raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(content), ""))
				if err != nil {
					a.add("content", "is not base64: %v", err)
				}
				content = string(raw)
			}
			if !replace && len(a.bad) == 0 {
				if _, err := c.engine.StatFile(ctx, c.Caller, c.ref, path, ""); err == nil {
					return nil, fault.New(fault.Exists, "the file %s is there already, and overwrite is false", quote(clip(path))).
						WithRemedy("set overwrite to true to replace it, or choose another filePath")
				}
			}
			if _, err := w.put(ctx, c, path, content); err != nil {
				return nil, err
			}
			return inText("File uploaded successfully: " + printablePath(path)), nil
		},
	}
}

func daytonaDownload() tool {
	return daytonaOfFile("The file.", daytonaFetch, tool{
		name: "file_download", title: "Download a file", readOnly: true, idempotent: true,
		about:   "Get a file of a sandbox: its text, or the image that it is (PNG, JPEG, GIF, WebP up to 1 MiB; also one in the data of a JSON file).",
		example: `{"id": "an-id", "filePath": "/workspace/plot.png"}`,
	})
}

// daytonaOfFile completes a tool whose only argument beside the sandbox is a file.
func daytonaOfFile(file string, do func(context.Context, *call, *words, string) (*answer, error), t tool) tool {
	t.params = []param{daytonaWords().which(), paramFile("filePath", file, "file_path")}
	t.run = func(ctx context.Context, c *call) (*answer, error) {
		w := daytonaWords()
		w.in(c)
		path := c.args.needs("filePath")
		if err := c.args.err(); err != nil {
			return nil, err
		}
		return do(ctx, c, w, path)
	}
	return t
}

// daytonaPart is one part of a file, in the list that a download is.
type daytonaPart struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	MIME string `json:"mimeType,omitempty"` // of an image, which follows as content of its own
}

func daytonaFetch(ctx context.Context, c *call, w *words, path string) (*answer, error) {
	f, err := w.get(ctx, c, path, 2*maxImage)
	if err != nil {
		return nil, err
	}
	image, media := f.data, imageType(f.data)
	if media == "" && strings.HasSuffix(f.info.Path, ".json") {
		image, media = imageInside(f.data)
	}
	switch {
	case media != "" && len(image) <= maxImage:
		out, err := inJSON([]daytonaPart{{Type: "image", MIME: media}}, "")
		if err == nil {
			out.image = &mcp.ImageContent{Data: image, MIMEType: media}
		}
		return out, err
	case media != "":
		return nil, c.tooMuch(ctx, &f.info, fault.TooLarge, "is an image of more than 1 MiB")
	case f.binary:
		return nil, c.tooMuch(ctx, &f.info, fault.Unsupported, "is no text")
	case len(f.data) > mostDownload:
		return nil, c.tooMuch(ctx, &f.info, fault.TooLarge, "has more text than a model is given at once, 256 KiB")
	}
	return inJSON([]daytonaPart{{Type: "text", Text: string(f.data)}}, "")
}

// tooMuch refuses to show a file, and says how to get at it.
func (c *call) tooMuch(ctx context.Context, info *agent.FileInfo, code fault.Code, why string) error {
	remedy := "look into it by execute_command (head, sed -n, file, xxd)"
	if s, err := c.engine.Get(ctx, c.Caller, c.ref); err == nil {
		if address, until := c.fileURL(s, info.Path, filelink.DefaultLife); address != "" {
			remedy += ", or download it until " + timeText(until) + " from " + address
		}
	}
	return fault.New(code, "%s (%d bytes) %s", printablePath(info.Path), info.Size, why).WithRemedy("%s", remedy)
}

// imageType is the type of an image that models can see, "" for all else.
func imageType(data []byte) string {
	switch media := http.DetectContentType(data); media {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return media
	}
	return ""
}

// imageInside finds the image that programs leave in a JSON file, as base64 under
// "data"; "" where there is none.
func imageInside(file []byte) (image []byte, media string) {
	var plot struct {
		Data string `json:"data"`
	}
	if json.Unmarshal(file, &plot) != nil {
		return nil, ""
	}
	_, encoded, found := strings.Cut(plot.Data, ";base64,")
	if !found {
		encoded = plot.Data
	}
	image, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, ""
	}
	return image, imageType(image)
}

func daytonaInfo() tool {
	look := func(ctx context.Context, c *call, w *words, path string) (*answer, error) {
		info, err := c.engine.StatFile(ctx, c.Caller, c.ref, path, "")
		if err != nil {
			return nil, w.pathError(ctx, c, path, err)
		}
		return inJSON(daytonaFileOf(&info), "  ")
	}
	return daytonaOfFile("The file.", look, tool{
		name: "get_file_info", title: "Get information about a file", readOnly: true, idempotent: true,
		about:   "Get the size, permissions, owner and time of a file in a sandbox.",
		example: `{"id": "an-id", "filePath": "hello.py"}`,
	})
}

// daytonaFile is a file as Daytona's toolbox describes one.
type daytonaFile struct {
	Name        string `json:"name"`
	Path        string `json:"path"`
	IsDir       bool   `json:"isDir"`
	Size        int64  `json:"size"`
	Mode        string `json:"mode"`        // like -rw-r--r--
	Permissions string `json:"permissions"` // like 0644
	Owner       string `json:"owner"`
	Group       string `json:"group"`
	ModTime     string `json:"modTime"` // the older form of modifiedAt
	ModifiedAt  string `json:"modifiedAt"`
}

func daytonaFileOf(f *agent.FileInfo) daytonaFile {
	mode := f.Mode
	switch f.Type {
	case agent.Dir:
		mode |= fs.ModeDir
	case agent.Symlink:
		mode |= fs.ModeSymlink
	}
	return daytonaFile{
		Name: f.Name, Path: f.Path, IsDir: f.Type == agent.Dir, Size: f.Size, Mode: mode.String(), Permissions: octal(f.Mode),
		Owner: account(f.UID), Group: account(f.GID), ModTime: f.ModTime.UTC().String(), ModifiedAt: timeText(f.ModTime),
	}
}
