// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// disk is a sandbox's files, as its root may have left them.
type disk struct {
	files  map[string]string
	links  map[string]string
	others map[string]sandbox.FileType
	size   int64 // that Stat tells of every file; 0: its own
	grows  bool  // a file is longer than Stat told
	full   bool  // nothing can be written
	noRoot bool  // nothing may be done as root
	writes []string
}

func newDisk(files map[string]string) *disk {
	return &disk{files: maps.Clone(files), links: map[string]string{}, others: map[string]sandbox.FileType{}}
}

func (d *disk) Stat(_ context.Context, name, user string) (sandbox.FileInfo, error) {
	if d.noRoot && user == sandbox.UserRoot {
		return sandbox.FileInfo{}, fault.New(fault.Denied, "no root here")
	}
	info := sandbox.FileInfo{Name: path.Base(name), Path: name, Type: sandbox.RegularFile}
	text, file := d.files[name]
	to, link := d.links[name]
	other, odd := d.others[name]
	switch {
	case link:
		info.Type, info.Target = sandbox.Symlink, to
	case odd:
		info.Type = other
	case !file:
		return info, fault.New(fault.NotFound, "there is no %s", name)
	}
	if info.Size = int64(len(text)); d.size > 0 {
		info.Size = d.size
	}
	return info, nil
}

func (d *disk) ReadFile(_ context.Context, name string, o sandbox.ReadFileOptions) (sandbox.FileInfo, io.ReadCloser, error) {
	text, ok := d.files[name]
	if !ok {
		return sandbox.FileInfo{}, nil, fault.New(fault.Invalid, "%s is not a file", name)
	}
	r := io.Reader(strings.NewReader(text))
	if d.grows {
		r = endless{}
	}
	if o.Length > 0 {
		r = io.LimitReader(r, o.Length)
	}
	return sandbox.FileInfo{}, io.NopCloser(r), nil
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func (d *disk) WriteFile(_ context.Context, name string, r io.Reader, o sandbox.WriteFileOptions) (sandbox.FileInfo, bool, error) {
	b, err := io.ReadAll(r)
	switch {
	case err != nil:
		return sandbox.FileInfo{}, false, err
	case d.full:
		return sandbox.FileInfo{}, false, fault.New(fault.Exhausted, "the disk is full")
	case o.User != sandbox.UserRoot || o.Size != int64(len(b)):
		return sandbox.FileInfo{}, false, fmt.Errorf("written as %+v", o)
	}
	d.files[name] = string(b)
	d.writes = append(d.writes, name)
	return sandbox.FileInfo{}, false, nil
}

func (d *disk) Remove(_ context.Context, name string, _ sandbox.RemoveFileOptions) error {
	if _, ok := d.files[name]; !ok {
		return fault.New(fault.NotFound, "there is no %s", name)
	}
	delete(d.files, name)
	return nil
}

const (
	debian = "/etc/ssl/certs/ca-certificates.crt"
	alpine = "/etc/ssl/cert.pem"
	theirs = "-----BEGIN CERTIFICATE-----\ntheirs\n-----END CERTIFICATE-----\n"
	ours   = "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n"
)

func TestTrustComesAndGoes(t *testing.T) {
	for what, before := range map[string]map[string]string{
		"Debian":                {debian: theirs},
		"two files":             {debian: theirs, "/etc/pki/tls/certs/ca-bundle.crt": "# a comment\n" + theirs},
		"a last line not ended": {debian: strings.TrimSuffix(theirs, "\n")},
		"an empty file":         {debian: ""},
	} {
		t.Run(what, func(t *testing.T) {
			d := newDisk(before)
			for _, certificate := range []string{"older", ours, ours} {
				d.writes = nil
				env, complaint := Add(t.Context(), d, []byte(certificate), nil)
				if complaint != "" || env["SSL_CERT_FILE"] != debian || env["NODE_EXTRA_CA_CERTS"] != ownCertificate || len(env) != len(bundleVariables)+1 {
					t.Fatalf("%v %q", env, complaint)
				}
			}
			if len(d.writes) > 0 {
				t.Errorf("what is so already is written: %v", d.writes)
			}
			for name, text := range before {
				if text != "" && !strings.HasSuffix(text, "\n") {
					text += "\n"
				}
				if got := d.files[name]; got != text+blockBegin+ours+blockEnd {
					t.Errorf("%s: %q", name, got)
				}
			}
			if d.files[ownCertificate] != ours {
				t.Errorf("its own file: %q", d.files[ownCertificate])
			}
			for range 2 {
				if complaint := Remove(t.Context(), d); complaint != "" {
					t.Error(complaint)
				}
			}
			for name, text := range before {
				if got := d.files[name]; strings.TrimSuffix(got, "\n") != strings.TrimSuffix(text, "\n") {
					t.Errorf("afterwards %s is %q", name, got)
				}
			}
			if len(d.files) != len(before) {
				t.Errorf("afterwards there are %v", slices.Collect(maps.Keys(d.files)))
			}
		})
	}
}

func TestWhatWasNeverTrustedIsNotLookedFor(t *testing.T) {
	d := newDisk(map[string]string{debian: theirs + blockBegin + "the sandbox's own\n" + blockEnd})
	if complaint := Remove(t.Context(), d); complaint != "" || len(d.writes) > 0 {
		t.Errorf("%q, %v", complaint, d.writes)
	}
}

func TestBlocksDoNotPileUp(t *testing.T) {
	block := blockBegin + ours + blockEnd
	for text, want := range map[string]string{
		"":                                     "",
		theirs:                                 theirs,
		block + theirs + block:                 theirs,
		theirs + block + block:                 theirs,
		theirs + blockBegin:                    theirs,
		theirs + blockBegin + ours:             theirs + ours,
		blockEnd + theirs:                      blockEnd + theirs,
		blockBegin + block + theirs:            theirs,
		theirs + strings.Repeat(blockBegin, 9): theirs,
	} {
		if got := withoutBlock([]byte(text)); string(got) != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestAnImageWithoutABundle(t *testing.T) {
	d := newDisk(map[string]string{})
	env, complaint := Add(t.Context(), d, []byte(ours), nil)
	if !maps.Equal(env, map[string]string{"NODE_EXTRA_CA_CERTS": ownCertificate}) || !strings.Contains(complaint, "no file of certificates") {
		t.Errorf("%v %q", env, complaint)
	}
	if len(d.files) != 1 || d.files[ownCertificate] != ours {
		t.Errorf("there are %v", d.files)
	}
}

// Whatever root inside has made of its files, nothing waits, nothing outside of them is
// written, and what is wrong is told.
func TestAHostileRootKeepsOnlyItselfFromItsSecrets(t *testing.T) {
	for what, c := range map[string]struct {
		change func(d *disk)
		says   string
		env    string // SSL_CERT_FILE
	}{
		"a link elsewhere":        {func(d *disk) { delete(d.files, debian); d.links[debian] = "/workspace/mine" }, "not followed", ""},
		"a link up":               {func(d *disk) { delete(d.files, debian); d.links[debian] = "../../../proc/self/mem" }, "not followed", ""},
		"a link to itself":        {func(d *disk) { delete(d.files, debian); d.links[debian] = "ca-certificates.crt" }, "not followed", ""},
		"a fifo":                  {func(d *disk) { delete(d.files, debian); d.others[debian] = sandbox.OtherFile }, "not a file", ""},
		"a directory":             {func(d *disk) { delete(d.files, debian); d.others[debian] = sandbox.Directory }, "not a file", ""},
		"a huge file":             {func(d *disk) { d.size = 1 << 40 }, "more than", ""},
		"a file without an end":   {func(d *disk) { d.grows = true }, "more than", ""},
		"a fifo that Stat missed": {func(d *disk) { d.files[alpine] = ""; d.others[debian] = sandbox.RegularFile; delete(d.files, debian) }, "is not a file", alpine},
		"a full disk":             {func(d *disk) { d.full = true }, "full", ""},
		"its own is a link":       {func(d *disk) { d.links[ownCertificate] = "/etc/passwd" }, "not followed", debian},
		"a link of the system's":  {func(d *disk) { d.links[alpine] = "certs/ca-certificates.crt" }, "", debian},
		"a link to there":         {func(d *disk) { d.links[alpine] = debian }, "", debian},
	} {
		t.Run(what, func(t *testing.T) {
			d := newDisk(map[string]string{debian: theirs})
			c.change(d)
			env, complaint := Add(t.Context(), d, []byte(ours), nil)
			if (c.says == "") != (complaint == "") || !strings.Contains(complaint, c.says) {
				t.Errorf("says %q", complaint)
			}
			if env["SSL_CERT_FILE"] != c.env {
				t.Errorf("the variable is %q", env["SSL_CERT_FILE"])
			}
			for _, name := range d.writes {
				if name != ownCertificate && !slices.Contains(bundles, name) || d.links[name] != "" {
					t.Errorf("%s was written", name)
				}
			}
		})
	}
}

func TestASandboxWithoutARootIsLeftAlone(t *testing.T) {
	d := newDisk(map[string]string{debian: theirs})
	d.noRoot = true
	env, complaint := Add(t.Context(), d, []byte(ours), nil)
	if len(env) > 0 || complaint != "no root here" || len(d.writes) > 0 {
		t.Errorf("%v %q %v", env, complaint, d.writes)
	}
}

func TestTrustIsBoundedInTime(t *testing.T) {
	d := newDisk(map[string]string{debian: theirs})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	stuck := stuckDisk{d}
	if _, complaint := Add(ctx, stuck, []byte(ours), nil); complaint != "no answer" {
		t.Errorf("says %q", complaint)
	}
	if len(d.writes) > 0 || !bytes.Equal([]byte(d.files[debian]), []byte(theirs)) {
		t.Error("it was written")
	}
}

// stuckDisk answers nothing before its caller loses patience.
type stuckDisk struct{ *disk }

func (stuckDisk) Stat(ctx context.Context, _, _ string) (sandbox.FileInfo, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return sandbox.FileInfo{}, fault.New(fault.Internal, "it would wait for ever")
	}
	<-ctx.Done()
	return sandbox.FileInfo{}, fault.Wrap(fault.Timeout, ctx.Err(), "no answer")
}

// What the operator adds stands beside the authority of bound secrets, and stays without it.
func TestTheOperatorsAuthoritiesStayWithoutSecrets(t *testing.T) {
	const operators = "-----BEGIN CERTIFICATE-----\noperators\n-----END CERTIFICATE-----\n"
	d := newDisk(map[string]string{debian: theirs})
	if env, complaint := Add(t.Context(), d, []byte(ours), []byte(operators)); complaint != "" || env["PIP_CERT"] != debian {
		t.Fatalf("%v %q", env, complaint)
	}
	if got := d.files[debian]; got != theirs+blockBegin+ours+operators+blockEnd {
		t.Errorf("both: %q", got)
	}
	env, complaint := Add(t.Context(), d, nil, []byte(operators))
	if want := map[string]string{"SSL_CERT_FILE": debian, "REQUESTS_CA_BUNDLE": debian, "CURL_CA_BUNDLE": debian, "NODE_EXTRA_CA_CERTS": ownCertificate}; complaint != "" || !maps.Equal(env, want) {
		t.Errorf("%v %q", env, complaint)
	}
	if got := d.files[debian]; got != theirs+blockBegin+operators+blockEnd || d.files[ownCertificate] != operators {
		t.Errorf("without secrets: %q, %q", got, d.files[ownCertificate])
	}
}
