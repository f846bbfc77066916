// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package trust has a sandbox trust the authority that bound secrets need, and those that the
// operator adds: it writes their certificates into the files where systems and programs look, and
// takes them out again. It knows the files of a sandbox, through whoever reaches them, and neither
// secrets nor verbs.
package trust

import (
	"bytes"
	"context"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// What a sandbox trusts: the files of certificates that systems have, by the place where
// each looks. Links among them lead to others of them.
var bundles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Alpine, Arch
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem", // openSUSE
	"/etc/ssl/cert.pem",      // Alpine, the BSDs' libraries
}

const (
	// ownCertificate has what is added alone, where systems look for that.
	ownCertificate = "/usr/local/share/ca-certificates/sandpit.crt"
	blockBegin     = "# sandpit: bound secrets, begin\n"
	blockEnd       = "# sandpit: bound secrets, end\n"
	maxBundle      = 4 << 20         // bytes
	bound          = 5 * time.Second // for all of it: what is inside may be anything
)

// bundleVariables name a bundle to programs that bring one of their own. The last ones go before
// what pip's and git's files of settings say: they are set for bound secrets alone, whose hosts are
// not reached otherwise.
var bundleVariables = []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO"}

// gentle is how many of bundleVariables no file of settings yields to.
const gentle = 3

// moreVariable names a file of certificates to add to a program's own.
const moreVariable = "NODE_EXTRA_CA_CERTS"

// Files are those of a sandbox; *agent.Client has them.
type Files interface {
	Stat(ctx context.Context, path, user string) (sandbox.FileInfo, error)
	ReadFile(ctx context.Context, path string, o sandbox.ReadFileOptions) (sandbox.FileInfo, io.ReadCloser, error)
	WriteFile(ctx context.Context, path string, r io.Reader, o sandbox.WriteFileOptions) (sandbox.FileInfo, bool, error)
	Remove(ctx context.Context, path string, o sandbox.RemoveFileOptions) error
}

// Add makes the sandbox trust the authority of bound secrets, and the operator's, beside what it
// trusts already, and returns the variables by which programs find them. Each is certificates in
// PEM; one of the two may be empty. It may be called again, with others too. What cannot be changed
// is told in words, "" if all was, and the rest is changed nonetheless.
//
// All of it is the sandbox's own: where a root inside has put a link or worse, at most that
// sandbox does without its secrets.
func Add(ctx context.Context, in Files, secrets, operators []byte) (env map[string]string, complaint string) {
	certificate := slices.Concat(secrets, operators)
	variables := bundleVariables
	if len(secrets) == 0 {
		variables = bundleVariables[:gentle]
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	if _, err := in.Stat(ctx, ownCertificate, sandbox.UserRoot); err != nil && !fault.Is(err, fault.NotFound) {
		return nil, reason(err)
	}
	var wrong []string
	env = make(map[string]string)
	block := blockBegin + string(certificate) + blockEnd
	for _, name := range bundles {
		switch there, err := rewrite(ctx, in, name, block); {
		case err != nil:
			wrong = append(wrong, name+": "+reason(err))
		case there && env[bundleVariables[0]] == "":
			for _, v := range variables {
				env[v] = name
			}
		}
	}
	if err := keepOwn(ctx, in, certificate); err != nil {
		wrong = append(wrong, ownCertificate+": "+reason(err))
	} else {
		env[moreVariable] = ownCertificate
	}
	if env[bundleVariables[0]] == "" && len(wrong) == 0 {
		wrong = append(wrong, "the image has no file of certificates that is known here ("+strings.Join(bundles, ", ")+"); let programs use "+ownCertificate)
	}
	return env, strings.Join(wrong, "; ")
}

// Remove takes back what Add did, if it was done.
func Remove(ctx context.Context, in Files) (complaint string) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	if _, err := in.Stat(ctx, ownCertificate, sandbox.UserSandbox); fault.Is(err, fault.NotFound) {
		return ""
	}
	var wrong []string
	for _, name := range bundles {
		if _, err := rewrite(ctx, in, name, ""); err != nil {
			wrong = append(wrong, name+": "+reason(err))
		}
	}
	if len(wrong) > 0 { // what tells of it stays, to be tried again
		return strings.Join(wrong, "; ")
	}
	if err := in.Remove(ctx, ownCertificate, sandbox.RemoveFileOptions{User: sandbox.UserRoot}); err != nil && !fault.Is(err, fault.NotFound) {
		return ownCertificate + ": " + reason(err)
	}
	return ""
}

// rewrite puts block at the end of a file in place of the one that it has, and tells
// whether there is a file.
func rewrite(ctx context.Context, in Files, name, block string) (there bool, err error) {
	was, err := readPlain(ctx, in, name)
	if was == nil || err != nil {
		return false, err
	}
	now := append(withoutBlock(was), block...)
	if bytes.Equal(was, now) {
		return true, nil
	}
	_, _, err = in.WriteFile(ctx, name, bytes.NewReader(now), sandbox.WriteFileOptions{User: sandbox.UserRoot, Size: int64(len(now))})
	return err == nil, err
}

// withoutBlock returns a bundle without our blocks, its last line ended.
func withoutBlock(b []byte) []byte {
	out := make([]byte, 0, len(b)+4096)
	for {
		before, rest, found := bytes.Cut(b, []byte(blockBegin))
		out = append(out, before...)
		if !found {
			break
		}
		if _, after, ended := bytes.Cut(rest, []byte(blockEnd)); ended {
			rest = after
		}
		b = rest
	}
	if n := len(out); n > 0 && out[n-1] != '\n' {
		out = append(out, '\n')
	}
	return out
}

// keepOwn writes the certificate into a file of its own.
func keepOwn(ctx context.Context, in Files, certificate []byte) error {
	was, err := readPlain(ctx, in, ownCertificate)
	if err != nil || bytes.Equal(was, certificate) {
		return err
	}
	_, _, err = in.WriteFile(ctx, ownCertificate, bytes.NewReader(certificate), sandbox.WriteFileOptions{
		User: sandbox.UserRoot, Mode: 0o644, Size: int64(len(certificate)), MakeParents: true,
	})
	return err
}

// readPlain reads a regular file; nil: there is none, or a link to one that is looked at
// by itself.
func readPlain(ctx context.Context, in Files, name string) ([]byte, error) {
	info, err := in.Stat(ctx, name, sandbox.UserRoot)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case info.Type == sandbox.Symlink:
		to := path.Clean(info.Target)
		if !path.IsAbs(to) {
			to = path.Join(path.Dir(name), to)
		}
		if to != name && slices.Contains(bundles, to) {
			return nil, nil
		}
		return nil, fault.New(fault.Denied, "it is a link to %q, which is not followed", sandbox.Clip(to, 200))
	case info.Type != sandbox.RegularFile:
		return nil, fault.New(fault.Denied, "it is not a file")
	case info.Size > maxBundle:
		return nil, fault.New(fault.Denied, "it has %d bytes, more than %d", info.Size, maxBundle)
	}
	_, r, err := in.ReadFile(ctx, name, sandbox.ReadFileOptions{User: sandbox.UserRoot, Length: maxBundle + 1})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, maxBundle+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > maxBundle:
		return nil, fault.New(fault.Denied, "it has more than %d bytes", maxBundle)
	case b == nil:
		b = []byte{}
	}
	return b, nil
}

// reason is the text of an error: what a caller may see of it.
func reason(err error) string { return sandbox.Clip(fault.As(err).Message, sandbox.MaxEventDetail) }
