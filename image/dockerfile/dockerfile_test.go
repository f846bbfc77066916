// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerfile_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/image/dockerfile"
	"sandpit.dev/image/oci"
)

func parse(t *testing.T, text string, o dockerfile.Options) (*dockerfile.File, error) {
	t.Helper()
	o.Arch = "amd64"
	return dockerfile.Parse([]byte(text), o)
}

// plan returns the plan of a stage that begins with a config.
func plan(t *testing.T, text string, o dockerfile.Options, c oci.Config) *dockerfile.Plan {
	t.Helper()
	f, err := parse(t, text, o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Plan(f.Target, dockerfile.State{Config: c})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWhatCannotBeDoneIsRefusedWithItsLine(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct {
		code fault.Code
		says string
	}{
		"":                                       {fault.Invalid, "no instructions"},
		"# nothing\n":                            {fault.Invalid, "no instructions"},
		"ARG a\n":                                {fault.Invalid, "has no FROM"},
		"RUN true\n":                             {fault.Invalid, "line 1"},
		"FROM a\n\nRUM true\n":                   {fault.Invalid, "line 3 of the Dockerfile: unknown instruction: RUM"},
		"FROM a\nCOPY x\n":                       {fault.Invalid, "line 2"},
		"FROM a\nHEALTHCHECK CMD true\n":         {fault.Unsupported, "line 2 of the Dockerfile: HEALTHCHECK"},
		"FROM a\nONBUILD RUN true\n":             {fault.Unsupported, "line 2 of the Dockerfile: ONBUILD"},
		"FROM a\nSTOPSIGNAL 9\n":                 {fault.Unsupported, "line 2 of the Dockerfile: STOPSIGNAL"},
		"FROM a\nVOLUME /data\n":                 {fault.Unsupported, "line 2 of the Dockerfile: VOLUME"},
		"FROM a\nADD https://a.example/x /\n":    {fault.Unsupported, "line 2 of the Dockerfile: ADD takes nothing from an address"},
		"FROM a\nADD git@github.com:a/b.git /\n": {fault.Unsupported, "line 2 of the Dockerfile: ADD takes nothing from an address"},
		"FROM a\nADD --checksum=sha256:24454f830cdb571e2c4ad15481119c43b3cafd48dd869a9b2945d1036d1dc68d x /\n": {fault.Unsupported, "line 2 of the Dockerfile: ADD with --checksum"},
		"FROM a\nRUN --mount=type=cache,target=/x \\\n  true\n":                                                {fault.Unsupported, "line 2 of the Dockerfile: RUN --mount"},
		"FROM a\nRUN --network=none true\n":                                                                    {fault.Unsupported, "line 2 of the Dockerfile: RUN --network"},
		"FROM a\nRUN <<EOF\n#!/usr/bin/perl\nEOF\n":                                                            {fault.Unsupported, "line 2 of the Dockerfile: a here-document"},
		"FROM --platform=linux/s390x a\n":                                                                      {fault.Unsupported, "line 1 of the Dockerfile: FROM --platform=linux/s390x"},
		"FROM $NOTHING\n":                                                                                      {fault.Invalid, "line 1"},
		"FROM a\nENV a-b=c\n":                                                                                  {fault.Unsupported, "line 2"},
		"FROM a\nEXPOSE 99999\n":                                                                               {fault.Invalid, "line 2 of the Dockerfile: \"99999\" is not a valid port"},
		"FROM a\nCOPY --chmod=u+x a /b\n":                                                                      {fault.Unsupported, "line 2"},
		"FROM a\nCOPY --chmod=4755 a /b\n":                                                                     {fault.Unsupported, "line 2"},
		"FROM a\nCOPY --from=scratch a /b\n":                                                                   {fault.Invalid, "line 2"},
		"FROM a\nCOPY a b /c\n":                                                                                {fault.Invalid, "line 2"},
		"FROM a\nCOPY --parents a /b\n":                                                                        {fault.Unsupported, "line 2 of the Dockerfile: COPY --parents"},
		"FROM a\nRUN ${\nENV x=${y\n":                                                                          {fault.Invalid, "line 3"},
		"FROM a\nARG U=https://x.example\nADD $U /\n":                                                          {fault.Unsupported, "line 3 of the Dockerfile: ADD takes nothing from an address"},
		"FROM a\nENV x=yyyyyyyyyyyyyyyy\n" + strings.Repeat("ENV x=$x$x\n", 60):                                {fault.Invalid, "could make more than"},
		"ARG x=yyyyyyyyyyyyyyyy\n" + strings.Repeat("ARG x=$x$x\n", 60) + "FROM a\n":                           {fault.Invalid, "could make more than"},
		"FROM a\nENV x=" + strings.Repeat("y", 9000) + "\nENV z=${x//y/" + strings.Repeat("z", 9000) + "}\n": {fault.Invalid, "could make more than"},
		"FROM a\x00\n": {fault.Invalid, "UTF-8"},
		strings.Repeat("# a long comment\n", 70_000):                  {fault.Invalid, "more than 1048576"},
		"FROM a\n" + strings.Repeat("USER a\n", 1001):                 {fault.Invalid, "more than 1000"},
		"FROM a\nENV x=" + strings.Repeat("y", 60_000) + "\nENV z=$x": {fault.Invalid, "variables"},
	} {
		f, err := parse(t, text, dockerfile.Options{})
		if err == nil {
			_, err = f.Plan(f.Target, dockerfile.State{})
		}
		if fault.Of(err) != c.code || !strings.Contains(fault.As(err).Message, c.says) {
			t.Errorf("%.60q: %v, want %s that says %q", text, err, c.code, c.says)
		}
	}
	// A stage that the target does not need may have what is not done here.
	if _, err := parse(t, "FROM a AS x\nVOLUME /data\nFROM b\n", dockerfile.Options{}); err != nil {
		t.Error(err)
	}
	if _, err := parse(t, "FROM a AS x\nVOLUME /data\nFROM b\nCOPY --from=X /a /b\n", dockerfile.Options{}); !fault.Is(err, fault.Unsupported) {
		t.Errorf("%v", err)
	}
	for _, o := range []dockerfile.Options{{Target: "y"}, {Target: "7"}, {Args: map[string]string{"UNKNOWN": "x"}}} {
		if _, err := parse(t, "FROM a AS x\n", o); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestVariablesAreThoseOfTheirLine(t *testing.T) {
	t.Parallel()
	p := plan(t, `ARG VERSION=1
FROM a:${VERSION} AS first
ARG VERSION
ARG NAME="${VERSION:-none}-x" GIVEN=default
ARG TARGETARCH
ENV A=1 B=$A-${NAME} C='$A'
ENV A=2 D=$A
RUN echo $A
ENV NAME=env
RUN ["echo", "$A"]
SHELL ["/bin/bash", "-ec"]
RUN for i in $A; do \
  # a comment
  echo $i; done
USER ${NAME}:1
WORKDIR rel
WORKDIR ../$TARGETARCH
COPY --chown=$NAME a b* $A/ext/
`, dockerfile.Options{Args: map[string]string{"GIVEN": "given"}}, oci.Config{Env: []string{"BASE=b", "PATH=/bin"}, WorkingDir: "/top"})
	if len(p.Steps) != 6 {
		t.Fatalf("%+v", p.Steps)
	}
	env := p.Steps[0].Env
	if env["B"] != "-1-x" || env["C"] != "$A" || env["D"] != "1" || env["A"] != "2" || env["GIVEN"] != "given" || env["NAME"] != "1-x" || env["VERSION"] != "1" || env["BASE"] != "b" || env["PATH"] != "/bin" || env["TARGETARCH"] != "amd64" {
		t.Errorf("%v", env)
	}
	if s := p.Steps[1]; s.Env["NAME"] != "env" || !slices.Equal(s.Argv, []string{"echo", "$A"}) || s.Line != 10 || s.Dir != "/top" {
		t.Errorf("%+v", s)
	}
	if s := p.Steps[2]; !slices.Equal(s.Argv, []string{"/bin/bash", "-ec", "for i in $A; do   echo $i; done"}) || s.Line != 12 {
		t.Errorf("%+v", s)
	}
	if s := p.Steps[5]; s.Dir != "/top/amd64" || s.Dest != "/top/amd64/2/ext/" || s.Chown != "env" || !slices.Equal(s.Sources, []string{"a", "b*"}) || s.User != "env:1" && s.User != "" {
		t.Errorf("%+v", s)
	}
	if slices.Contains(p.State.Config.Env, "GIVEN=given") || !slices.Contains(p.State.Config.Env, "NAME=env") || p.State.Config.WorkingDir != "/top/amd64" {
		t.Errorf("%+v", p.State.Config)
	}
}

func TestAnEntryPointTakesTheBasesCommandAway(t *testing.T) {
	t.Parallel()
	base := oci.Config{Entrypoint: []string{"old"}, Cmd: []string{"cmd"}, Labels: map[string]string{"a": "1"}, Ports: []string{"80/tcp"}}
	p := plan(t, "FROM a\nENTRYPOINT [\"new\"]\nLABEL b=2\nEXPOSE 80 8000-8001/UDP\n", dockerfile.Options{}, base)
	if c := p.State.Config; !slices.Equal(c.Entrypoint, []string{"new"}) || c.Cmd != nil || len(c.Labels) != 2 || !slices.Equal(c.Ports, []string{"80/tcp", "8000/udp", "8001/udp"}) {
		t.Errorf("%+v", c)
	}
	p = plan(t, "FROM a\nCMD one two\nENTRYPOINT new\n", dockerfile.Options{}, base)
	if c := p.State.Config; !slices.Equal(c.Cmd, []string{"/bin/sh", "-c", "one two"}) || !slices.Equal(c.Entrypoint, []string{"/bin/sh", "-c", "new"}) {
		t.Errorf("%+v", c)
	}
	if len(base.Labels) != 1 || len(base.Ports) != 1 {
		t.Errorf("the base was changed: %+v", base)
	}
}

// written is an archive of headers, each with as many bytes as it says.
func written(t *testing.T, headers ...*tar.Header) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(bytes.Repeat([]byte("x"), int(h.Size))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func read(t *testing.T, r io.Reader, l dockerfile.Limits) (*dockerfile.Context, string, error) {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "spool"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := dockerfile.ReadContext(t.Context(), r, f, l)
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, dir, err
}

func TestAHostileContextIsRefused(t *testing.T) {
	t.Parallel()
	file := func(name string, size int64) *tar.Header {
		return &tar.Header{Name: name, Typeflag: tar.TypeReg, Size: size}
	}
	for title, c := range map[string]struct {
		archive *bytes.Buffer
		code    fault.Code
	}{
		"above":           {written(t, file("../x", 1)), fault.Invalid},
		"in the middle":   {written(t, file("a/../../x", 1)), fault.Invalid},
		"absolute":        {written(t, file("/etc/passwd", 1)), fault.Invalid},
		"below a link":    {written(t, &tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, file("l/passwd", 1)), fault.Invalid},
		"below a file":    {written(t, file("f", 1), file("f/g", 1)), fault.Invalid},
		"a device":        {written(t, &tar.Header{Name: "d", Typeflag: tar.TypeBlock, Devmajor: 8}), fault.Invalid},
		"a queue":         {written(t, &tar.Header{Name: "q", Typeflag: tar.TypeFifo}), fault.Invalid},
		"hard, outside":   {written(t, &tar.Header{Name: "h", Typeflag: tar.TypeLink, Linkname: "../../etc/shadow"}), fault.Invalid},
		"hard, of a link": {written(t, &tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc/shadow"}, &tar.Header{Name: "h", Typeflag: tar.TypeLink, Linkname: "l"}), fault.Invalid},
		"twice":           {written(t, file("a", 1), file("a", 2)), fault.Invalid},
		"a file then dir": {written(t, file("a", 1), &tar.Header{Name: "a/", Typeflag: tar.TypeDir}), fault.Invalid},
		"too deep":        {written(t, file(strings.Repeat("d/", 300)+"f", 1)), fault.Invalid},
		"too large":       {written(t, file("a", 600), file("b", 600)), fault.TooLarge},
		"too many":        {written(t, file("a", 1), file("b", 1), file("c", 1), file("d", 1), file("e", 1)), fault.TooLarge},
		"too many above":  {written(t, file("a/b/c/d/e", 1)), fault.TooLarge},
		"cut off":         {bytes.NewBuffer(written(t, file("a", 900)).Bytes()[:800]), fault.Invalid},
		"no archive":      {bytes.NewBufferString(strings.Repeat("FROM scratch\n", 100)), fault.Invalid},
		"cut off gzip":    {bytes.NewBufferString("\x1f\x8b\x08\x00"), fault.Invalid},
	} {
		_, dir, err := read(t, c.archive, dockerfile.Limits{Bytes: 1000, Files: 4})
		if fault.Of(err) != c.code {
			t.Errorf("%s: %v, want %s", title, err, c.code)
		}
		if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
			t.Errorf("%s: %v was made", title, all)
		}
	}
}

func TestAContextIsBoundedInNamesAndByTheDisk(t *testing.T) {
	t.Parallel()
	files := func() *bytes.Buffer {
		return written(t, &tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 1}, &tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: strings.Repeat("x", 100)})
	}
	if _, _, err := read(t, files(), dockerfile.Limits{Names: 101}); !fault.Is(err, fault.TooLarge) {
		t.Errorf("names: %v, want too_large", err)
	}
	if _, _, err := read(t, files(), dockerfile.Limits{Names: 102}); err != nil {
		t.Error(err)
	}
	full := fault.NoSpace(fault.HostDisk, nil, "there is no room")
	if _, _, err := read(t, files(), dockerfile.Limits{Room: func() error { return full }}); !fault.Is(err, fault.Full) {
		t.Errorf("a full disk: %v", err)
	}
}

func TestSourcesAreFoundInTheContextAlone(t *testing.T) {
	t.Parallel()
	link := func(name, to string) *tar.Header {
		return &tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}
	}
	file := func(name string, size int64) *tar.Header {
		return &tar.Header{Name: name, Typeflag: tar.TypeReg, Size: size}
	}
	c, _, err := read(t, written(t, file("./a", 3), file("d/x.txt", 1), file("d/sub/y.txt", 2), file("d-e", 1), link("in", "d/sub"), link("out", "/../../a"), link("dead", "/etc/passwd"), link("loop", "loop"),
		&tar.Header{Name: "d/hard", Typeflag: tar.TypeLink, Linkname: "a"}), dockerfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string][]string{
		"a": {"a"}, "/a": {"a"}, "./../a": {"a"}, "d": {"d", "d/hard", "d/sub", "d/sub/y.txt", "d/x.txt"}, "d/*.txt": {"d/x.txt"}, "*/*.txt": {"d/x.txt"}, "in/y.txt": {"d/sub/y.txt"}, "out": {"a"}, "d?e": {"d-e"},
	} {
		all, err := c.Find(source)
		var got []string
		for _, f := range all {
			got = append(got, f.Top.Name)
			for _, e := range f.Tree {
				got = append(got, e.Name)
			}
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", source, got, err, want)
		}
	}
	for _, source := range []string{"none", "dead", "a/b", "*.md", "in/../a/b"} {
		if _, err := c.Find(source); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", source, err)
		}
	}
	for _, source := range []string{"loop", "[a"} {
		if _, err := c.Find(source); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", source, err)
		}
	}
	one, _ := c.Find("d")
	two, _ := c.Find("d/")
	if one[0].Hash() != two[0].Hash() {
		t.Error("one directory has two hashes")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("FROM a\nRUN <<E\nx\nE\nCOPY <<A <<B /x/\na\nA\nb\nB\n")
	f.Add("# escape=`\nARG a=${b:-c}\nFROM ${a} AS d\nEXPOSE 1-2\nFROM d\nCOPY --from=d a b\n")
	f.Fuzz(func(t *testing.T, text string) {
		stuck := time.AfterFunc(5*time.Second, func() { panic("it takes too long") })
		defer stuck.Stop()
		file, err := dockerfile.Parse([]byte(text), dockerfile.Options{Arch: "amd64"})
		if err != nil {
			if c := fault.Of(err); c != fault.Invalid && c != fault.Unsupported {
				t.Fatalf("%v", err)
			}
			return
		}
		var state dockerfile.State
		for i := range file.Stages {
			p, err := file.Plan(i, state)
			if err != nil {
				if c := fault.Of(err); c != fault.Invalid && c != fault.Unsupported {
					t.Fatalf("%v", err)
				}
				return
			}
			state = p.State
		}
	})
}
