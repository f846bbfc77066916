// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/filelink"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// mostDownload is how many bytes of text a download gives to a model.
const mostDownload = 256 << 10

func upload() toolset.Tool {
	return toolset.Tool{
		Name: "file_upload", Title: "Upload a file", Destructive: true, Idempotent: true,
		About: "Write a file in a sandbox, of text or of base64, at most 8 MiB. Missing directories are made.",
		Params: []toolset.Param{
			words().Which(),
			paramFile("filePath", "The file; below /tmp unless the user says otherwise.", "file_path"),
			{Name: "content", Kind: toolset.Text, Required: true, About: "The whole content."},
			{Name: "encoding", Kind: toolset.Text, Required: true, About: "Of content: base64, or text."},
			{Name: "overwrite", Kind: toolset.Boolean, Required: true, About: "Replace a file that is there; else that is an error."},
		},
		Example: `{"id": "an-id", "filePath": "/tmp/hello.py", "content": "print('hello')\n", "encoding": "text", "overwrite": true}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			a, w := c.Args, words()
			w.In(c)
			path, content, replace := needs(a, "filePath"), a.Text("content"), a.Bool("overwrite", false)
			if a.Text("encoding") == "base64" {
				raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(content), ""))
				if err != nil {
					a.Add("content", "is not base64: %v", err)
				}
				content = string(raw)
			}
			if !replace && len(a.Bad) == 0 {
				if _, err := c.Files.StatFile(ctx, c.Caller, c.Ref, path, ""); err == nil {
					return nil, fault.New(fault.Exists, "the file %s is there already, and overwrite is false", toolset.Quote(toolset.Clip(path))).
						WithRemedy("set overwrite to true to replace it, or choose another filePath")
				}
			}
			if _, err := w.WriteFile(ctx, c, path, content); err != nil {
				return nil, err
			}
			return toolset.TextAnswer("File uploaded successfully: " + toolset.PrintablePath(path)), nil
		},
	}
}

func download() toolset.Tool {
	return ofFile("The file.", fetch, toolset.Tool{
		Name: "file_download", Title: "Download a file", ReadOnly: true, Idempotent: true,
		About:   "Get a file of a sandbox: its text, or the image that it is (PNG, JPEG, GIF, WebP up to 1 MiB; also one in the data of a JSON file).",
		Example: `{"id": "an-id", "filePath": "/workspace/plot.png"}`,
	})
}

// ofFile completes a tool whose only argument beside the sandbox is a file.
func ofFile(file string, do func(context.Context, *toolset.Call, *toolset.Words, string) (*toolset.Answer, error), t toolset.Tool) toolset.Tool {
	t.Params = []toolset.Param{words().Which(), paramFile("filePath", file, "file_path")}
	t.Run = func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
		w := words()
		w.In(c)
		path := needs(c.Args, "filePath")
		if err := c.Args.Err(); err != nil {
			return nil, err
		}
		return do(ctx, c, w, path)
	}
	return t
}

// part is one part of a file, in the list that a download is.
type part struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	MIME string `json:"mimeType,omitempty"` // of an image, which follows as content of its own
}

func fetch(ctx context.Context, c *toolset.Call, w *toolset.Words, path string) (*toolset.Answer, error) {
	f, err := w.ReadFile(ctx, c, path, 2*toolset.MaxImage)
	if err != nil {
		return nil, err
	}
	image, media := f.Data, imageType(f.Data)
	if media == "" && strings.HasSuffix(f.Info.Path, ".json") {
		image, media = imageInside(f.Data)
	}
	switch {
	case media != "" && len(image) <= toolset.MaxImage:
		out, err := toolset.JSONAnswer([]part{{Type: "image", MIME: media}}, "")
		if err == nil {
			out.Image = &mcp.ImageContent{Data: image, MIMEType: media}
		}
		return out, err
	case media != "":
		return nil, tooMuch(ctx, c, &f.Info, fault.TooLarge, "is an image of more than 1 MiB")
	case f.Binary:
		return nil, tooMuch(ctx, c, &f.Info, fault.Unsupported, "is not text")
	case len(f.Data) > mostDownload:
		return nil, tooMuch(ctx, c, &f.Info, fault.TooLarge, "has more text than a model is given at once, 256 KiB")
	}
	return toolset.JSONAnswer([]part{{Type: "text", Text: string(f.Data)}}, "")
}

// tooMuch refuses to show a file, and says how to get at it.
func tooMuch(ctx context.Context, c *toolset.Call, info *sandbox.FileInfo, code fault.Code, why string) error {
	remedy := "look into it by execute_command (head, sed -n, file, xxd)"
	if s, err := c.Sandboxes.Get(ctx, c.Caller, c.Ref); err == nil {
		if address, until := c.FileURL(s, info.Path, filelink.DefaultLife); address != "" {
			remedy += ", or download it until " + toolset.TimeText(until) + " from " + address
		}
	}
	return fault.New(code, "%s (%d bytes) %s", toolset.PrintablePath(info.Path), info.Size, why).WithRemedy("%s", remedy)
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

func info() toolset.Tool {
	look := func(ctx context.Context, c *toolset.Call, w *toolset.Words, path string) (*toolset.Answer, error) {
		info, err := c.Files.StatFile(ctx, c.Caller, c.Ref, path, "")
		if err != nil {
			return nil, w.PathError(ctx, c, path, err)
		}
		return toolset.JSONAnswer(fileOf(&info), "  ")
	}
	return ofFile("The file.", look, toolset.Tool{
		Name: "get_file_info", Title: "Get information about a file", ReadOnly: true, Idempotent: true,
		About:   "Get the size, permissions, owner and time of a file in a sandbox.",
		Example: `{"id": "an-id", "filePath": "hello.py"}`,
	})
}

// file is a file as Daytona's toolbox describes one.
type file struct {
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

func fileOf(f *sandbox.FileInfo) file {
	mode := f.Mode
	switch f.Type {
	case sandbox.Directory:
		mode |= fs.ModeDir
	case sandbox.Symlink:
		mode |= fs.ModeSymlink
	}
	return file{
		Name: f.Name, Path: f.Path, IsDir: f.Type == sandbox.Directory, Size: f.Size, Mode: mode.String(), Permissions: octal(f.Mode),
		Owner: account(f.UID), Group: account(f.GID), ModTime: f.ModTime.UTC().String(), ModifiedAt: toolset.TimeText(f.ModTime),
	}
}
