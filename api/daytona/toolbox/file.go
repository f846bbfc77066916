// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"context"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/service"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// byPath is the input of operations on one file. Relative paths begin in the sandbox's working directory.
type byPath struct {
	Ref  string  `path:"id"`
	Path *string `query:"path"`
}

// place returns the path, which must be given.
func (in *byPath) place() (string, error) {
	if in.Path == nil || *in.Path == "" {
		return "", fault.InvalidField("path", "is missing").WithReason(wire.CodeInvalidFilePath)
	}
	return *in.Path, nil
}

// fileError adds to an error about a file the reason that clients have a class for.
func fileError(err error) error {
	if err == nil {
		return nil
	}
	switch e := fault.As(err); {
	case e.Code == fault.NotFound && e.Reason == "": // and it is not the sandbox
		return withCode(err, wire.CodeFileNotFound)
	case e.Code == fault.Denied && e.Scope == "": // and it is not the token
		return withCode(err, wire.CodeFileAccessDenied)
	}
	return err
}

func fileOf(f sandbox.FileInfo) wire.File {
	mode := f.Mode
	switch f.Type {
	case sandbox.Directory:
		mode |= fs.ModeDir
	case sandbox.Symlink:
		mode |= fs.ModeSymlink
	case sandbox.OtherFile:
		mode |= fs.ModeIrregular
	case sandbox.RegularFile:
	}
	name := func(name string, id int) string {
		if name != "" {
			return name
		}
		return strconv.Itoa(id)
	}
	return wire.File{
		Name: f.Name, Path: f.Path, Size: f.Size, IsDir: f.Type == sandbox.Directory || f.TargetType == sandbox.Directory,
		Mode: mode.String(), Permissions: "0" + strconv.FormatInt(int64(f.Mode.Perm()), 8), Owner: name(f.Owner, f.UID), Group: name(f.Group, f.GID),
		ModTime: f.ModTime.UTC().String(), ModifiedAt: f.ModTime.UTC(),
	}
}

type listFiles struct {
	byPath
	Depth *int `query:"depth"`
}

func (a *API) listFiles(ctx context.Context, c *httpapi.Call, in *listFiles) ([]wire.File, error) {
	at := httpapi.Given(in.Path)
	if at == "" {
		at = "."
	}
	o := sandbox.ListFilesOptions{Limit: maxListed}
	if in.Depth != nil {
		if o.Depth = *in.Depth; o.Depth < 1 || o.Depth > sandbox.MaxListDepth {
			return nil, fault.InvalidField("depth", "%d is outside 1 to %d", o.Depth, sandbox.MaxListDepth)
		}
	}
	all, cut, err := service.Directory(ctx, a.Files, c.Caller, in.Ref, at, o, c.Reserve)
	if err != nil {
		return nil, err
	}
	if cut {
		return nil, fault.New(fault.TooLarge, "%s has more than a list has, which is %d entries, or 16 MiB of names", sandbox.Clip(at, 80), maxListed).WithRemedy("list a directory below it, or read them by a command")
	}
	out := make([]wire.File, len(all))
	for i, f := range all {
		out[i] = fileOf(f)
	}
	return out, nil
}

// maxListed is how many entries a list has; one with more is refused, for clients know of no next page.
const maxListed = 100_000

func (a *API) fileInfo(ctx context.Context, c *httpapi.Call, in *byPath) (wire.File, error) {
	p, err := in.place()
	if err != nil {
		return wire.File{}, err
	}
	f, err := a.Files.StatFile(ctx, c.Caller, in.Ref, p, "")
	if err != nil {
		return wire.File{}, err
	}
	return fileOf(f), nil
}

type makeFolder struct {
	byPath
	Mode *string `query:"mode"`
}

func (a *API) makeFolder(ctx context.Context, c *httpapi.Call, in *makeFolder) (httpapi.None, error) {
	p, err := in.place()
	if err != nil {
		return httpapi.None{}, err
	}
	mode, err := modeOf(in.Mode)
	if err != nil {
		return httpapi.None{}, err
	}
	return httpapi.None{}, a.Files.MakeDir(ctx, c.Caller, in.Ref, p, sandbox.MakeDirOptions{Parents: true, Mode: mode})
}

// modeOf parses an octal mode; nil and "" are 0.
func modeOf(text *string) (fs.FileMode, error) {
	if text == nil || *text == "" {
		return 0, nil
	}
	m, err := strconv.ParseUint(*text, 8, 32)
	if err != nil || m > 0o777 {
		return 0, fault.InvalidField("mode", "%q is not an octal mode such as 755", sandbox.Clip(*text, 40))
	}
	return fs.FileMode(m), nil
}

type deleteFile struct {
	byPath
	Recursive *bool `query:"recursive"`
}

func (a *API) deleteFile(ctx context.Context, c *httpapi.Call, in *deleteFile) (httpapi.None, error) {
	p, err := in.place()
	if err != nil {
		return httpapi.None{}, err
	}
	err = a.Files.RemoveFile(ctx, c.Caller, in.Ref, p, sandbox.RemoveFileOptions{Recursive: in.Recursive != nil && *in.Recursive})
	return httpapi.None{}, err
}

type moveFile struct {
	Ref  string  `path:"id"`
	From *string `query:"source"`
	To   *string `query:"destination"`
}

func (a *API) moveFile(ctx context.Context, c *httpapi.Call, in *moveFile) (httpapi.None, error) {
	if httpapi.Given(in.From) == "" || httpapi.Given(in.To) == "" {
		return httpapi.None{}, fault.InvalidField("source", "and destination must both be given").WithReason(wire.CodeInvalidFilePath)
	}
	err := a.Files.MoveFile(ctx, c.Caller, in.Ref, *in.From, *in.To, sandbox.MoveFileOptions{})
	return httpapi.None{}, err
}

type byPattern struct {
	byPath
	Pattern *string `query:"pattern"`
}

// search searches below a directory, to the bound of the engine.
func (a *API) search(ctx context.Context, c *httpapi.Call, in *byPattern, o sandbox.SearchFilesOptions) (sandbox.FileInfo, []sandbox.FileMatch, error) {
	if httpapi.Given(in.Pattern) == "" {
		return sandbox.FileInfo{}, nil, fault.InvalidField("pattern", "is missing")
	}
	at := httpapi.Given(in.Path)
	if at == "" {
		at = "."
	}
	o.Limit = maxFound
	dir, found, _, err := a.Files.SearchFiles(ctx, c.Caller, in.Ref, at, o)
	return dir, found, err
}

// maxFound is how many matches an answer has.
const maxFound = 10_000

// findInFiles searches for a text in files.
func (a *API) findInFiles(ctx context.Context, c *httpapi.Call, in *byPattern) ([]wire.Match, error) {
	dir, found, err := a.search(ctx, c, in, sandbox.SearchFilesOptions{Pattern: regexp.QuoteMeta(httpapi.Given(in.Pattern))})
	if err != nil {
		return nil, err
	}
	out := make([]wire.Match, len(found))
	for i, m := range found {
		out[i] = wire.Match{File: path.Join(dir.Path, m.Rel), Line: int(m.Line), Content: m.Text}
	}
	return out, nil
}

// searchFiles searches for files by their names.
func (a *API) searchFiles(ctx context.Context, c *httpapi.Call, in *byPattern) (wire.Found, error) {
	glob := httpapi.Given(in.Pattern)
	dir, found, err := a.search(ctx, c, in, sandbox.SearchFilesOptions{Glob: strings.TrimPrefix(glob, "/")})
	if err != nil {
		return wire.Found{}, err
	}
	out := wire.Found{Files: make([]string, len(found))}
	for i, m := range found {
		out.Files[i] = path.Join(dir.Path, m.Rel)
	}
	return out, nil
}

type replaceInFiles struct {
	Ref  string `path:"id"`
	Body wire.Replace
}

func (a *API) replaceInFiles(ctx context.Context, c *httpapi.Call, in *replaceInFiles) ([]wire.Replaced, error) {
	all, err := a.Files.ReplaceInFiles(ctx, c.Caller, in.Ref, in.Body.Files, sandbox.ReplaceFilesOptions{Pattern: in.Body.Pattern, Replacement: httpapi.Given(in.Body.NewValue)})
	if err != nil {
		return nil, err
	}
	out := make([]wire.Replaced, len(all))
	for i, f := range all {
		if out[i] = (wire.Replaced{File: f.Path, Success: f.Err == nil}); f.Err != nil {
			out[i].Error = fault.As(f.Err).Message
		}
	}
	return out, nil
}

type setPermissions struct {
	byPath
	Owner *string `query:"owner"`
	Group *string `query:"group"`
	Mode  *string `query:"mode"`
}

func (a *API) setPermissions(ctx context.Context, c *httpapi.Call, in *setPermissions) (httpapi.None, error) {
	p, err := in.place()
	if err != nil {
		return httpapi.None{}, err
	}
	mode, err := modeOf(in.Mode)
	if err != nil {
		return httpapi.None{}, err
	}
	o := sandbox.ChangeFileOptions{Owner: httpapi.Given(in.Owner), Group: httpapi.Given(in.Group)}
	if httpapi.Given(in.Mode) != "" {
		o.Mode = &mode
	}
	_, err = a.Files.ChangeFile(ctx, c.Caller, in.Ref, p, o)
	return httpapi.None{}, err
}

func (a *API) home(ctx context.Context, c *httpapi.Call, in *byRef) (wire.Dir, error) {
	s, err := a.Sandboxes.Get(ctx, c.Caller, in.Ref)
	if err != nil {
		return wire.Dir{}, err
	}
	if s.Account.As == sandbox.UserRoot {
		return wire.Dir{Dir: "/root"}, nil
	}
	return wire.Dir{Dir: s.Account.Full().Home}, nil
}

func (a *API) workDir(ctx context.Context, c *httpapi.Call, in *byRef) (wire.Dir, error) {
	s, err := a.Sandboxes.Get(ctx, c.Caller, in.Ref)
	if err != nil {
		return wire.Dir{}, err
	}
	return wire.Dir{Dir: s.Account.Full().Workdir}, nil
}
