// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/filelink"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Bounds of a read.
const (
	defaultLines = 2000
	mostLines    = 20_000
	lineRead     = 2_000    // characters of one line
	leastShown   = 2_100    // characters of an answer; a line with its number fits
	scanned      = 64 << 20 // bytes that are passed over on the way to the first line
	sniffed      = 8 << 10  // bytes that decide whether it is text
)

func readFile() toolset.Tool {
	return toolset.Tool{
		Name: "read_file", Title: "Read a file", ReadOnly: true, Idempotent: true,
		About: "Read a text file of a sandbox with line numbers, or see an image (PNG, JPEG, GIF, WebP up to 1 MiB). It gives 16,000 characters unless max_chars asks for more, and says which start_line goes on.",
		Params: []toolset.Param{
			toolset.PathParam("The file."),
			paramSandbox(),
			{Name: "start_line", Kind: toolset.Integer, Min: 1, Max: 1e9, About: "First line, default 1.", Aliases: []string{"offset", "start"}},
			{Name: "line_count", Kind: toolset.Integer, Min: 1, Max: mostLines, About: "Most lines, default 2000.", Aliases: []string{"limit", "lines", "max_lines"}},
			{Name: "max_chars", Kind: toolset.Integer, Min: leastShown, Max: toolset.ReadShown, About: "Default 16000.", Aliases: []string{"max_output_chars", "max_characters"}},
		},
		Example: `{"path": "src/main.py"}`,
		Run:     read,
	}
}

func read(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	path := a.Text("path")
	first, count := int(a.Number("start_line", 1)), int(a.Number("line_count", defaultLines))
	most := int(a.Number("max_chars", toolset.DefaultOutput))
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	info, body, err := c.Files.ReadFile(ctx, c.Caller, ref, path, sandbox.ReadFileOptions{})
	if err != nil {
		return nil, c.PathError(ctx, ref, path, err)
	}
	defer body.Close()
	in := bufio.NewReaderSize(body, 64<<10)
	begin, err := in.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	name := toolset.PrintablePath(info.Path)
	if toolset.IsBinary(begin, err == nil) {
		return readBinary(ctx, c, ref, &info, in, http.DetectContentType(begin))
	}
	p, err := readPage(in, first, count, most)
	if err != nil {
		return nil, err
	}
	out := &toolset.Answer{Verdict: fmt.Sprintf("%s · %d bytes · ", name, info.Size)}
	switch {
	case p.lines == 0 && first == 1:
		out.Verdict += "empty"
		return out, nil
	case p.lines == 0:
		return nil, fault.InvalidField("start_line", "%d is beyond the end: %s has %d lines", first, name, p.before).
			WithRemedy("call read_file again with a start_line from 1 to %d", max(1, p.before))
	case p.end:
		out.Verdict += fmt.Sprintf("lines %d to %d, the last", first, first+p.lines-1)
	default:
		out.Verdict += fmt.Sprintf("lines %d to %d, more follow", first, first+p.lines-1)
		out.Notes = append(out.Notes, fmt.Sprintf("for more, call read_file with start_line %d", first+p.lines))
	}
	if p.clipped {
		out.Notes = append(out.Notes, fmt.Sprintf("lines of more than %d characters were clipped (…)", lineRead))
	}
	out.Sections = []toolset.Section{{Title: "content", Body: p.text}}
	return out, nil
}

// page is what was read of a text.
type page struct {
	text    string
	before  int // lines passed over
	lines   int // in text
	end     bool
	clipped bool
}

// readPage reads count lines from the first, of most characters with their numbers.
func readPage(in *bufio.Reader, first, count, most int) (page, error) {
	var p page
	passed := 0
	for p.before < first-1 {
		part, err := in.ReadSlice('\n')
		if passed += len(part); passed > scanned {
			return p, fault.New(fault.TooLarge, "line %d is more than %d MiB into the file", first, scanned>>20).
				WithRemedy("use run_command with sed -n '%d,+100p' or tail", first)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			if len(part) > 0 {
				p.before++
			}
			p.end = true
			return p, nil
		case err != nil:
			return p, err
		default:
			p.before++
		}
	}
	var b strings.Builder
	shown := 0
	for p.lines < count {
		line, clipped, err := readLine(in)
		if errors.Is(err, io.EOF) {
			p.end = true
			break
		}
		if err != nil {
			return p, err
		}
		numbered := fmt.Sprintf("%6d\t%s\n", first+p.lines, line)
		if n := utf8.RuneCountInString(numbered); shown+n > most {
			p.text = b.String()
			return p, nil
		} else {
			shown += n
		}
		b.WriteString(numbered)
		p.lines++
		p.clipped = p.clipped || clipped
	}
	if !p.end {
		_, err := in.Peek(1)
		p.end = errors.Is(err, io.EOF)
	}
	p.text = b.String()
	return p, nil
}

// readLine reads one line, of which it keeps its beginning. io.EOF means that
// there is none.
func readLine(in *bufio.Reader) (line string, clipped bool, err error) {
	var kept []byte
	any := false
	for {
		part, err := in.ReadSlice('\n')
		any = any || len(part) > 0
		if room := utf8.UTFMax*(lineRead+1) - len(kept); room > 0 {
			kept = append(kept, part[:min(room, len(part))]...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && any:
		case err != nil:
			return "", false, err
		}
		break
	}
	kept = bytes.TrimSuffix(bytes.TrimSuffix(kept, []byte{'\n'}), []byte{'\r'})
	s := strings.ToValidUTF8(string(kept), "\uFFFD")
	if utf8.RuneCountInString(s) > lineRead {
		return toolset.FirstRunes(s, lineRead-1) + "…", true, nil
	}
	return s, false, nil
}

// readBinary returns an image as one, and of all else a link.
func readBinary(ctx context.Context, c *toolset.Call, ref string, info *sandbox.FileInfo, in io.Reader, media string) (*toolset.Answer, error) {
	name := toolset.PrintablePath(info.Path)
	out := &toolset.Answer{Verdict: fmt.Sprintf("%s · %s, %d bytes", name, media, info.Size)}
	image := false
	switch media {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		image = true
	}
	if image {
		if err := c.Reserve(ctx, min(info.Size, toolset.MaxImage)); err != nil {
			return nil, err
		}
		data, err := io.ReadAll(io.LimitReader(in, toolset.MaxImage+1))
		if err != nil {
			return nil, err
		}
		if len(data) <= toolset.MaxImage {
			out.Image = &mcp.ImageContent{Data: data, MIMEType: media}
			return out, nil
		}
	}
	s, err := c.Sandboxes.Get(ctx, c.Caller, ref)
	if err != nil {
		return nil, err
	}
	if image {
		out.Verdict += fmt.Sprintf(" · not shown: an image of more than %d bytes", toolset.MaxImage)
		out.Lines = append(out.Lines, "next: make it smaller with run_code or run_command, and read that file")
	} else {
		out.Verdict += " · not shown: a binary file"
		out.Lines = append(out.Lines, "next: look into it with run_command (file, xxd, python3)")
	}
	if address, until := c.FileURL(s, info.Path, filelink.DefaultLife); address != "" {
		out.Lines = append(out.Lines, "or download it until "+toolset.TimeText(until)+": "+address, "get_file_url makes a link that is good for longer")
	}
	out.Links = append(out.Links, toolset.ResourceLink(s.ID, info))
	return out, nil
}

func writeFile() toolset.Tool {
	return toolset.Tool{
		Name: "write_file", Title: "Write a file", Destructive: true, Idempotent: true,
		About: "Write a whole file in a sandbox, at most 8 MiB, replacing what was there. Missing directories are made. Reads see the old file or the new one, never half.",
		Params: []toolset.Param{
			toolset.PathParam("The file."),
			{Name: "content", Kind: toolset.Text, Required: true, About: "The whole content.", Aliases: []string{"contents", "text", "file_text", "data"}},
			paramSandbox(),
			{Name: "encoding", Kind: toolset.Text, Enum: []string{"utf-8", "base64"}, About: "Of content, default utf-8; base64 for binary files."},
			{Name: "mode", Kind: toolset.Text, About: "Permissions in octal, like 755. Default: those of the old file, else 644."},
		},
		Example: `{"path": "hello.py", "content": "print('hello')\n"}`,
		Run:     write,
	}
}

func write(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	path, content, mode := a.Text("path"), a.Text("content"), a.Text("mode")
	o := sandbox.WriteFileOptions{MakeParents: true}
	if mode != "" {
		n, err := strconv.ParseUint(strings.TrimPrefix(mode, "0o"), 8, 32)
		if err != nil || n > 0o777 || n == 0 {
			a.Add("mode", "%q is not a valid octal permission between 1 and 777", toolset.Clip(mode))
		}
		o.Mode = fs.FileMode(n)
	}
	if a.Text("encoding") == "base64" {
		raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(content), ""))
		if err != nil {
			a.Add("content", "is not base64: %v", err)
		}
		content = string(raw)
	}
	if len(content) > toolset.MaxWrite {
		a.Add("content", "has %d bytes, more than %d; write it in parts with run_command, or upload it by REST: PUT /v1/sandboxes/{id}/files/{path}", len(content), toolset.MaxWrite)
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, true)
	if err != nil {
		return nil, err
	}
	o.Size = int64(len(content))
	info, created, err := c.Files.WriteFile(ctx, c.Caller, ref, path, strings.NewReader(content), o)
	if err != nil {
		return nil, c.PathError(ctx, ref, path, err)
	}
	what := "replaced"
	if created {
		what = "created"
	}
	out := &toolset.Answer{Verdict: fmt.Sprintf("%s %s (%d bytes, mode %o) · sandbox %s", what, toolset.PrintablePath(info.Path), info.Size, info.Mode.Perm(), ref)}
	if s, err := c.Sandboxes.Get(ctx, c.Caller, ref); err == nil { // else it has been deleted since
		out.Links = append(out.Links, toolset.ResourceLink(s.ID, &info))
	}
	return out, nil
}

func getFileURL() toolset.Tool {
	return toolset.Tool{
		Name: "get_file_url", Title: "Get a link to a file", ReadOnly: true,
		About: "Get an HTTP link to a file of a sandbox, for the user or for curl: whoever has it can read that file until it expires, without a token.",
		Params: []toolset.Param{
			toolset.PathParam("The file."),
			paramSandbox(),
			{Name: "expires_minutes", Kind: toolset.Number, Min: filelink.MinLife.Minutes(), Max: filelink.MaxLife.Minutes(), About: "1 to 10080, default 60.", Aliases: []string{"expires", "ttl_minutes"}},
		},
		Example: `{"path": "/artifacts/report.pdf"}`,
		Run:     linkFile,
	}
}

func linkFile(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	path, life := a.Text("path"), a.Number("expires_minutes", filelink.DefaultLife.Minutes())
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	// Opened, and not only looked at: a link of the sandbox's may lead to the file.
	info, body, err := c.Files.ReadFile(ctx, c.Caller, ref, path, sandbox.ReadFileOptions{Length: 1})
	if err != nil {
		return nil, c.PathError(ctx, ref, path, err)
	}
	_ = body.Close() // nothing was read
	s, err := c.Sandboxes.Get(ctx, c.Caller, ref)
	if err != nil {
		return nil, err
	}
	address, until := c.FileURL(s, info.Path, time.Duration(life*float64(time.Minute)))
	if address == "" {
		return nil, fault.New(fault.Unsupported, "this server makes no links to files").
			WithRemedy("read_file shows the file %s", toolset.PrintablePath(info.Path))
	}
	out := &toolset.Answer{
		Verdict: fmt.Sprintf("%s · %s, %s · sandbox %s", toolset.PrintablePath(info.Path), toolset.MediaOf(info.Path), toolset.BytesText(info.Size), ref),
		Lines:   []string{address, "good until " + toolset.TimeText(until) + " for whoever has it, and it ends with the sandbox"},
	}
	out.Links = append(out.Links, toolset.ResourceLink(s.ID, &info))
	return out, nil
}
