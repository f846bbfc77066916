// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"io"
	"io/fs"
	"path"
	"strings"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Names and paths in this file are Unicode strings that stand for any bytes: see
// wire.EscapeName for how a name that is not UTF-8 looks. A path that is not
// valid UTF-8 itself is fault.Invalid. Paths are absolute, or relative to the workspace. User is as in Command, and what is done is done
// with exactly that user's rights inside.

// ReadFile opens a regular file, or the target of a link to one. The reader fails if the
// connection does; the caller closes it, and it ends with ctx. A fifo, a device or a directory is
// fault.Invalid, a file of the kernel's fault.Denied.
func (c *Client) ReadFile(ctx context.Context, path string, o sandbox.ReadFileOptions) (sandbox.FileInfo, io.ReadCloser, error) {
	req := &wire.Request{Op: wire.OpRead, Path: path, User: o.User, Offset: o.Offset, Length: o.Length, Version: o.Version}
	var w wire.FileInfo
	s, err := c.call(ctx, req, &w)
	if err != nil {
		return sandbox.FileInfo{}, nil, err
	}
	fi, err := fileInfo(w, "")
	if err != nil {
		s.close()
		return sandbox.FileInfo{}, nil, err
	}
	return fi, &fileReader{s: s, length: o.Length}, nil
}

// fileReader reads the Data frames of a read as a stream.
type fileReader struct {
	s      *stream
	rest   []byte
	length int64 // of the range; 0 or less: unknown
	got    int64
	err    error
}

func (r *fileReader) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		t, p, err := r.s.next()
		switch {
		case err != nil:
			r.err = err
		case t == wire.Done:
			r.err = io.EOF
		case t != wire.Data:
			r.err = r.s.broken("a frame stands among a file's bytes that is none")
		default:
			r.rest = p
			if r.got += int64(len(p)); r.length > 0 && r.got > r.length {
				r.rest, r.err = nil, r.s.broken("it sends more of a file than was asked for")
			}
		}
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *fileReader) Close() error {
	r.s.close()
	return nil
}

// WriteFile writes a regular file, whole or not at all: it replaces an old one when all of r was
// received, and if anything fails before, or the connection is cut, the old one stays. A link is
// followed, and its target is replaced. created reports whether the file is new. With a condition the file is looked at before
// and after r is read, and one that is not as it says is fault.PreconditionFailed; the answer has the new version.
func (c *Client) WriteFile(ctx context.Context, path string, r io.Reader, o sandbox.WriteFileOptions) (fi sandbox.FileInfo, created bool, err error) {
	op := wire.OpWrite
	if o.Attributes != nil {
		op = wire.OpWriteWith
	}
	condition := conditionOf(o.If)
	if condition != nil {
		op, condition.Attributes = wire.OpWriteIf, o.Attributes != nil
	}
	s, err := c.open(ctx, &wire.Request{
		Op: op, Path: path, User: o.User, Mode: modeBits(o.Mode), Size: o.Size, Parents: o.MakeParents, Sync: o.Sync, Attributes: o.Attributes, If: condition,
	}, true)
	if err != nil {
		return sandbox.FileInfo{}, false, err
	}
	defer s.close()
	if err := s.upload(r); err != nil {
		return sandbox.FileInfo{}, false, unconditional(condition, err)
	}
	var w wire.Written
	if err := s.reply(&w); err != nil {
		return sandbox.FileInfo{}, false, unconditional(condition, err)
	}
	fi, err = fileInfo(w.File, "")
	return fi, w.Created, err
}

// conditionOf is a condition as agents take it; nil: there is none.
func conditionOf(c sandbox.FileCondition) *wire.Condition {
	if c.IsZero() {
		return nil
	}
	return &wire.Condition{Versions: c.Versions, Any: c.Any, Absent: c.Absent}
}

// unconditional tells of an agent that knows no conditions.
func unconditional(c *wire.Condition, err error) error {
	if c == nil || !fault.Is(err, fault.Unsupported) {
		return err
	}
	return fault.Wrap(fault.Unsupported, err, "the sandbox's agent is of an earlier build, and knows no conditions of files").
		WithRemedy("stop the sandbox and start it again, or send it without a condition")
}

// isVersion reports whether an agent's version of a file can be one.
func isVersion(v string) bool {
	if len(v) != 2*wire.VersionBytes {
		return v == ""
	}
	return strings.Trim(v, "0123456789abcdef") == ""
}

// fill reads until p is full or r fails, and returns r's own error. io.ReadFull would turn a good
// end into io.ErrUnexpectedEOF, which also means a cut-off upload.
func fill(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = r.Read(p[n:])
		n += m
	}
	return n, err
}

// upload sends r as Data and End.
func (s *stream) upload(r io.Reader) error {
	const first = 4 << 10 // most files are small
	buf := make([]byte, wire.HeaderLen+first)
	at := 0 // bytes of frames that wait in buf
	for {
		n, err := fill(r, buf[at+wire.HeaderLen:])
		if n > 0 {
			wire.PutHeader(buf[at:], wire.Data, n)
			at += wire.HeaderLen + n
		}
		ended := err == io.EOF
		if err != nil && !ended {
			return err
		}
		frames := buf[:at]
		if ended {
			frames = wire.Append(frames, wire.End, nil)
		}
		if err := s.send(frames); err != nil {
			return s.unwanted(err)
		}
		if ended {
			return nil
		}
		if at = 0; len(buf) < wire.HeaderLen+wire.MaxData {
			buf = make([]byte, wire.HeaderLen+wire.MaxData)
		}
	}
}

// Stat describes a file, a regular one with its version. A link at the end of the path is not followed.
func (c *Client) Stat(ctx context.Context, path, user string) (sandbox.FileInfo, error) {
	var w wire.FileInfo
	if err := c.ask(ctx, &wire.Request{Op: wire.OpStat, Path: path, User: user, Version: true}, &w); err != nil {
		return sandbox.FileInfo{}, err
	}
	return fileInfo(w, "")
}

// Mkdir makes a directory; fault.Exists if the path exists.
func (c *Client) Mkdir(ctx context.Context, path string, o sandbox.MakeDirOptions) error {
	return c.ask(ctx, &wire.Request{Op: wire.OpMkdir, Path: path, User: o.User, Parents: o.Parents, Mode: modeBits(o.Mode)}, nil)
}

// Move renames a file or a directory. Between two file systems it copies and removes: complete or
// not at all under the new name.
func (c *Client) Move(ctx context.Context, from, to string, o sandbox.MoveFileOptions) error {
	return c.ask(ctx, &wire.Request{Op: wire.OpMove, Path: from, To: to, User: o.User, Overwrite: o.Overwrite}, nil)
}

// Remove removes a file, a link (never its target), or a directory. A recursive removal that
// fails, or whose ctx ends, has removed a part.
func (c *Client) Remove(ctx context.Context, path string, o sandbox.RemoveFileOptions) error {
	req := &wire.Request{Op: wire.OpRemove, Path: path, User: o.User, Recursive: o.Recursive, If: conditionOf(o.If)}
	if req.If != nil {
		req.Op = wire.OpRemoveIf
	}
	return unconditional(req.If, c.ask(ctx, req, nil))
}

// modeBits returns permission bits as in stat(2). Bits that have no place there become one that
// the agent refuses.
func modeBits(m fs.FileMode) uint32 {
	bits := uint32(m.Perm())
	if m&fs.ModeSticky != 0 {
		bits |= 0o1000
	}
	if m&^(fs.ModePerm|fs.ModeSticky) != 0 {
		bits |= 0o4000
	}
	return bits
}

// fileInfo checks a file from the agent. In lists dir is the directory's path.
func fileInfo(w wire.FileInfo, dir string) (sandbox.FileInfo, error) {
	const maxName, maxPath = 3 * 255, 3 * wire.MaxPath // escaped
	fi := sandbox.FileInfo{
		Name: w.Name, Path: w.Path, Type: sandbox.FileType(w.Type), Size: max(0, w.Size),
		Mode: fs.FileMode(w.Mode & 0o777), ModTime: w.Mod, UID: int(w.UID), GID: int(w.GID), Target: w.Target,
		Owner: w.Owner, Group: w.Group, TargetType: sandbox.FileType(w.TargetType), Attributes: w.Attributes, Version: w.Version,
	}
	if w.Mode&0o7000 != 0 {
		fi.Mode |= special(w.Mode)
	}
	if !isAccountName(fi.Owner) || !isAccountName(fi.Group) || !areAttributes(fi.Attributes) || !isVersion(fi.Version) || fi.TargetType != "" && fi.Type != sandbox.Symlink {
		return fi, badFile()
	}
	switch fi.TargetType {
	case "", sandbox.RegularFile, sandbox.Directory, sandbox.Symlink, sandbox.OtherFile:
	default:
		return fi, badFile()
	}
	if dir != "" {
		fi.Path = path.Join(dir, fi.Name)
		if fi.Name == "" || fi.Name == "." || fi.Name == ".." || strings.ContainsAny(fi.Name, "/\x00") {
			return fi, badFile()
		}
	}
	switch fi.Type {
	case sandbox.RegularFile, sandbox.Directory, sandbox.Symlink, sandbox.OtherFile:
	default:
		return fi, badFile()
	}
	if len(fi.Name) > maxName || len(fi.Path) > maxPath+maxName || len(fi.Target) > maxPath || !strings.HasPrefix(fi.Path, "/") {
		return fi, badFile()
	}
	return fi, nil
}

func badFile() error {
	return fault.New(fault.Unavailable, "the sandbox's agent gave an answer that makes no sense")
}
