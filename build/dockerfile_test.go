// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/access"
	"sandpit.dev/build"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/image/dockerfile"
	"sandpit.dev/image/imagetest"
)

// yard is a house with a directory of images of its own, which has the image python.
type yard struct {
	*house
	images *image.Store
	out    bytes.Buffer // of the last build
	events []dockerfile.Event
}

// linked returns a directory of images that shares the files of python.
func linked(t *testing.T) string {
	t.Helper()
	python := imagetest.Python(t)
	dir, err := os.MkdirTemp(imagetest.Dir(t), ".dockerfiles-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	from := filepath.Dir(python.Root)
	to := filepath.Join(dir, "python", filepath.Base(from))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := image.LinkTree(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	return dir
}

func openYard(t *testing.T, dir, images string) *yard {
	t.Helper()
	y := &yard{}
	y.house = open(t, dir, func(o *engine.Options, b *build.Options) {
		var err error
		if y.images, err = image.Open(image.Options{Dir: images}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = y.images.Close() })
		o.Images, b.Images = y.images, y.images
	})
	return y
}

var admin = access.Caller{Project: "default", Actor: "test", Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite, access.Admin}}

// packed is a context of texts by their names. A name that ends in a slash is a directory; a text that begins with -> is a link.
func packed(t *testing.T, files map[string]string) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text)), Uid: 4711, Gid: 4711}
		if to, ok := strings.CutPrefix(text, "->"); ok {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, to, 0
		}
		if strings.HasSuffix(name, "/") {
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
		}
		if strings.HasSuffix(name, ".sh") {
			h.Mode = 0o755
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := io.WriteString(w, text); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func (y *yard) dockerfile(ctx context.Context, files map[string]string, r dockerfile.Request) (image.Status, error) {
	y.out.Reset()
	y.events = nil
	return y.service.BuildDockerfile(ctx, admin, packed(y.t, files), r, func(e dockerfile.Event) {
		y.out.Write(e.Output)
		if e.Output == nil {
			y.events = append(y.events, e)
		}
	})
}

func (y *yard) made(files map[string]string, r dockerfile.Request) image.Image {
	y.t.Helper()
	st, err := y.dockerfile(y.t.Context(), files, r)
	if err != nil {
		y.t.Fatalf("%v\n%s", err, y.out.String())
	}
	return st.Image
}

// done returns how many steps were done, and how many were kept of an earlier build.
func (y *yard) done() (done, kept int) {
	for _, e := range y.events {
		switch {
		case e.Kept:
			kept++
		case e.Step > 0:
			done++
		}
	}
	return done, kept
}

// empty fails if images are unfinished, or a sandbox is left.
func (y *yard) empty(images string) {
	y.t.Helper()
	y.clean()
	left, err := os.ReadDir(filepath.Join(images, ".oci", "work"))
	if err != nil || len(left) > 0 {
		y.t.Errorf("left is %v, %v", left, err)
	}
}

func gzipped(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(packed(t, files).Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestADockerfileBecomesAnImage(t *testing.T) {
	images := linked(t)
	y := openYard(t, t.TempDir(), images)
	files := map[string]string{
		"Dockerfile": `# syntax=docker/dockerfile:1
ARG BASE=python
FROM ${BASE} AS make
ARG WORD=unset
ENV GREETING="hello ${WORD}"
WORKDIR /src
COPY src/ lib/
RUN echo "$GREETING $WORD" > word && cat lib/deep/b lib/a > out && ln word hard && ln -s word soft
RUN ["/bin/sh", "-c", "chown 33:33 word; id -u; pwd"]

FROM make AS tool
RUN cat word > tool

FROM python
LABEL org.example.one="a b" two=2
EXPOSE 8080 53/udp
COPY --from=make /src /app/
COPY --from=tool --chown=www-data:33 --chmod=750 /src/tool /usr/local/bin/the-tool
ADD --chown=1000 pack.tar.gz /unpacked/
ADD plain.gz /plain/
COPY *.md link.txt /docs/
COPY <<EOF /etc/note
a note of ${PATH:+the} file
EOF
RUN useradd --create-home --uid 1500 app && mkdir /work && chown app /work
USER app
WORKDIR /work
RUN <<EOF
id -un > who
echo $HOME >> who
EOF
USER 1000:1000
RUN id -un; touch /home/sandbox/mine
ENTRYPOINT ["python3", "-m"]
CMD http.server $PORT
`,
		"src/a": "A\n", "src/deep/b": "B\n", "src/run.sh": "#!/bin/sh\n", "src/left-out.log": "x", "pack.tar.gz": gzipped(t, map[string]string{"p/one": "1", "two.sh": "2"}),
		"plain.gz": "\x1f\x8bno archive", "one.md": "1", "two.md": "2", "link.txt": "->one.md", ".dockerignore": "**/*.log\nDockerfile\n!keep\n",
	}
	r := dockerfile.Request{Name: "test/app:1", Args: map[string]string{"WORD": "world"}}
	img := y.made(files, r)
	y.empty(images)
	at := func(name string) string { return filepath.Join(img.Root, name) }
	for name, want := range map[string]string{
		"app/word": "hello world world\n", "app/out": "B\nA\n", "app/soft": "hello world world\n", "usr/local/bin/the-tool": "hello world world\n", "unpacked/p/one": "1", "unpacked/two.sh": "2",
		"plain/plain.gz": "\x1f\x8bno archive", "docs/one.md": "1", "docs/two.md": "2", "docs/link.txt": "1", "etc/note": "a note of the file\n", "work/who": "app\n/home/app\n", "app/lib/deep/b": "B\n",
	} {
		if text, err := os.ReadFile(at(name)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v, want %q", name, text, err, want)
		}
	}
	for name, want := range map[string]struct{ uid, gid, mode uint32 }{
		"app/word": {33, 33, 0o644}, "usr/local/bin/the-tool": {33, 33, 0o750}, "unpacked/p/one": {1000, 1000, 0o644}, "docs/one.md": {0, 0, 0o644}, "app/lib/run.sh": {0, 0, 0o755},
		"home/sandbox/mine": {1000, 1000, 0o644}, "work/who": {1500, 1500, 0o644}, "work": {1500, 0, 0o755},
	} {
		var st unix.Stat_t
		if err := unix.Lstat(at(name), &st); err != nil || st.Uid != want.uid || st.Gid != want.gid || st.Mode&0o7777 != want.mode {
			t.Errorf("%s: %v, belongs to %d:%d with mode %o, want %v", name, err, st.Uid, st.Gid, st.Mode&0o7777, want)
		}
	}
	for _, gone := range []string{"app/lib/left-out.log", "src", "run/sandpit-build", "Dockerfile"} {
		if _, err := os.Lstat(at(gone)); err == nil {
			t.Errorf("%s is in the image", gone)
		}
	}
	var one, two, git, bases unix.Stat_t
	if unix.Lstat(at("app/word"), &one) != nil || unix.Lstat(at("app/hard"), &two) != nil || one.Ino != two.Ino {
		t.Error("the hard link is another file")
	}
	if unix.Lstat(at("usr/bin/git"), &git) != nil || unix.Lstat(filepath.Join(y.base.Root, "usr/bin/git"), &bases) != nil || git.Ino != bases.Ino {
		t.Error("what was not changed is not shared with the base")
	}
	c := img.Other.Config
	if c.User != "1000:1000" || c.WorkingDir != "/work" || c.Labels["org.example.one"] != "a b" || c.Labels["two"] != "2" || !slices.Equal(c.Ports, []string{"53/udp", "8080/tcp"}) ||
		!slices.Equal(c.Entrypoint, []string{"python3", "-m"}) || !slices.Equal(c.Cmd, []string{"/bin/sh", "-c", "http.server $PORT"}) || img.Env["GREETING"] != "" || img.Env["PATH"] == "" {
		t.Errorf("%+v", c)
	}
	has(t, y.out.String(), "0\n/src\n", "sandbox\n")
	if n, kept := y.done(); n != 15 || kept != 0 {
		t.Errorf("%d steps were done, %d kept", n, kept)
	}

	// A second build does no step, and is the same image.
	again := y.made(files, r)
	if n, kept := y.done(); n != 0 || kept == 0 || again.Digest != img.Digest {
		t.Errorf("%d steps were done again, %d kept, and the image is %s", n, kept, again.Digest)
	}
	// What changes does what is behind it again, and the image has another digest; a sandbox has what it should.
	files["one.md"] = "one"
	changed := y.made(files, r)
	if n, kept := y.done(); n != 6 || kept == 0 || changed.Digest == img.Digest {
		t.Errorf("%d steps were done, %d kept", n, kept)
	}
	found, err := y.images.Find(t.Context(), "test/app:1")
	if err != nil || found.Digest != changed.Digest {
		t.Errorf("the name means %s, %v", found.Digest, err)
	}
	box, _, err := y.engine.Create(t.Context(), admin, engine.CreateRequest{Image: "test/app:1"})
	if err != nil {
		t.Fatal(err)
	}
	res, err := y.engine.Exec(t.Context(), admin, string(box.ID), engine.ExecRequest{Shell: "cat /docs/one.md; the-tool 2>&1; id -u"}, nil)
	if err != nil || !strings.HasPrefix(string(res.Stdout), "one") || !strings.Contains(string(res.Stdout), "1000") {
		t.Errorf("%v %s", err, res.Stdout)
	}
	if err := y.engine.Delete(t.Context(), admin, string(box.ID)); err != nil {
		t.Error(err)
	}
	y.empty(images)
}

func TestABuildOfADockerfileThatFailsLeavesNothing(t *testing.T) {
	images := linked(t)
	y := openYard(t, t.TempDir(), images)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for title, c := range map[string]struct {
		text string
		code fault.Code
		says string
	}{
		"a step":       {"FROM python\n\nRUN echo before && \\\n  exit 3\n", fault.Unavailable, "line 3 of the Dockerfile: RUN echo before && exit 3: it ended with exit code 3"},
		"no file":      {"FROM python\nCOPY a b /x/\n", fault.Invalid, `line 2 of the Dockerfile: "b" is not in the build's context`},
		"no user":      {"FROM python\nUSER nobody-here\nRUN true\n", fault.Invalid, `line 3 of the Dockerfile: RUN true: the image has no user "nobody-here"`},
		"no image":     {"FROM registry.invalid/no/such:1\nRUN true\n", "", "line 1 of the Dockerfile: the image \"registry.invalid/no/such:1\" is not here"},
		"in its place": {"FROM python\nCOPY a /etc\nRUN test -f /etc/a\nCOPY a /etc/ssl/../apt/apt.conf.d\nRUN test -f /etc/apt/apt.conf.d/a\nCOPY d /etc/passwd\n", "", "line 6 of the Dockerfile: COPY d /etc/passwd: "},
		"a name":       {"FROM scratch\nCOPY a /\nRUN true\n", fault.Unavailable, "line 3 of the Dockerfile: RUN true: it ended with exit code 127"},
		"no scope":     {"", fault.Denied, ""},
		"canceled":     {"FROM python\nRUN echo begun; sleep 1000\n", "", ""},
	} {
		files := map[string]string{"Dockerfile": c.text, "a": "1", "d/e": "2"}
		r := dockerfile.Request{Name: "failing", Dockerfile: "Dockerfile"}
		var err error
		switch title {
		case "no scope":
			_, err = y.service.BuildDockerfile(t.Context(), looker, packed(t, files), r, func(dockerfile.Event) {})
		case "canceled":
			_, err = y.service.BuildDockerfile(ctx, admin, packed(t, files), r, func(e dockerfile.Event) {
				cancelOn(e.Output, "begun\n", cancel)
			})
		default:
			_, err = y.dockerfile(t.Context(), files, r)
		}
		if err == nil || c.code != "" && fault.Of(err) != c.code || c.says != "" && !strings.Contains(fault.As(err).Message, c.says) {
			t.Errorf("%s: %v, want %s that says %q", title, err, c.code, c.says)
		}
		y.empty(images)
		if _, err := y.images.Find(t.Context(), "failing"); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: an image is there: %v", title, err)
		}
		all, err := y.images.List(t.Context())
		for _, st := range all {
			if st.State == image.Building {
				t.Errorf("%s: %s is still being built, %v", title, st.Name, err)
			}
		}
	}
	if _, err := y.dockerfile(t.Context(), map[string]string{"Dockerfile": "FROM python\n"}, dockerfile.Request{Name: "python"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a name of the catalogue: %v", err)
	}
}

// Contexts that come slowly are on the disk meanwhile.
func TestBuildsOfDockerfilesAreBounded(t *testing.T) {
	images := linked(t)
	y := openYard(t, t.TempDir(), images)
	const most = 8
	var slow sync.WaitGroup
	var ends []*io.PipeWriter
	for range most {
		r, w := io.Pipe()
		ends = append(ends, w)
		slow.Go(func() {
			if _, err := y.service.BuildDockerfile(t.Context(), admin, r, dockerfile.Request{}, func(dockerfile.Event) {}); err == nil {
				t.Error("an archive that breaks off was built")
			}
		})
		if _, err := w.Write([]byte("x")); err != nil { // it is being read
			t.Fatal(err)
		}
	}
	files := map[string]string{"Dockerfile": "FROM scratch\nCOPY Dockerfile /\n"}
	if _, err := y.dockerfile(t.Context(), files, dockerfile.Request{}); !fault.Is(err, fault.Exhausted) {
		t.Errorf("one more: %v, want exhausted", err)
	}
	for _, w := range ends {
		_ = w.CloseWithError(io.ErrUnexpectedEOF)
	}
	slow.Wait()
	if _, err := y.dockerfile(t.Context(), files, dockerfile.Request{}); err != nil {
		t.Errorf("after them: %v", err)
	}
	y.empty(images)
}

// What a context and a Dockerfile say of paths ends in the sandbox of the build.
func TestAHostileContextReachesNothingOfTheHost(t *testing.T) {
	images := linked(t)
	y := openYard(t, t.TempDir(), images)
	outside := filepath.Join(t.TempDir(), "outside")
	img := y.made(map[string]string{
		"Dockerfile": "FROM scratch AS a\nCOPY out /in/\nCOPY ../../../../../../../up /x/../../../up\nWORKDIR /../..\nWORKDIR ../w\nADD good.tar /w/\n",
		"out/l":      "->" + outside, "out/m": "->../../../../../../../../../etc/shadow", "up": "u", "good.tar": packed(t, map[string]string{"good": "1", "l": "->/in"}).String(),
	}, dockerfile.Request{Target: "a", Name: "hostile"})
	if text, err := os.ReadFile(filepath.Join(img.Root, "up")); err != nil || string(text) != "u" {
		t.Errorf("%q, %v", text, err)
	}
	if to, err := os.Readlink(filepath.Join(img.Root, "in/l")); err != nil || to != outside {
		t.Errorf("%q, %v", to, err)
	}
	for title, files := range map[string]map[string]string{
		"of a stage, a link out":    {"Dockerfile": "FROM scratch AS a\nCOPY l /in/\nFROM scratch\nCOPY --from=a /in/l2 /x\n", "l/l2": "->" + outside},
		"a link out of it":          {"Dockerfile": "FROM python\nCOPY l /l\n", "l": "->/etc/shadow"},
		"above its top":             {"Dockerfile": "FROM python\nCOPY l /l\n", "l": "->../../../../etc/shadow"},
		"round and round":           {"Dockerfile": "FROM python\nCOPY l /l\n", "l": "->m", "m": "->l"},
		"of the Dockerfile":         {"Dockerfile": "->/etc/passwd"},
		"through a link":            {"Dockerfile": "FROM python\nCOPY d/shadow /l\n", "d": "->/etc"},
		"an archive above":          {"Dockerfile": "FROM python\nADD x.tar /x/\n", "x.tar": packed(t, map[string]string{"../../etc/passwd": "x"}).String()},
		"an archive through a link": {"Dockerfile": "FROM python\nADD x.tar /x/\n", "x.tar": packed(t, map[string]string{"l": "->/etc", "l/passwd": "x"}).String()},
		"an archive behind a link":  {"Dockerfile": "FROM python\nCOPY e /e/\nADD x.tar /e/\n", "e/l": "->/etc", "x.tar": packed(t, map[string]string{"l/passwd": "x"}).String()},
	} {
		if _, err := y.dockerfile(t.Context(), files, dockerfile.Request{Name: "hostile-too"}); !fault.Is(err, fault.Invalid) && (title != "of a stage, a link out" || !fault.Is(err, fault.NotFound)) {
			t.Errorf("%s: %v", title, err)
		}
	}
	y.empty(images)
}

func TestAServerThatIsKilledInABuildOfADockerfileLeavesACleanStore(t *testing.T) {
	images := linked(t)
	for _, point := range []string{"create.done", "build.step", "snapshot.done", "commit"} {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			y := openYard(t, dir, images)
			y.stop()
			_ = y.images.Close()
			t.Setenv(crashImages, images)
			killAt(t, y.house, point)
			y = openYard(t, dir, images)
			if _, err := y.images.Find(t.Context(), "crash"); !fault.Is(err, fault.NotFound) {
				t.Errorf("an image is there: %v", err)
			}
			if left, err := os.ReadDir(filepath.Join(images, ".oci", "work")); err != nil || len(left) > 0 {
				t.Errorf("left is %v, %v", left, err)
			}
			img := y.made(crashFile(), dockerfile.Request{Name: "after-" + strings.ReplaceAll(point, ".", "-")})
			if text, err := os.ReadFile(filepath.Join(img.Root, "opt/two")); err != nil || string(text) != "two\n" {
				t.Errorf("%q, %v", text, err)
			}
			if _, kept := y.done(); kept == 0 && (point == "build.step" || point == "commit") {
				t.Error("the step that was done is not kept")
			}
			y.empty(images)
		})
	}
}

// crashDockerfile builds until it is killed: while the image is made at the latest.
func crashDockerfile(s *build.Service) error {
	files := crashFile()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			return err
		}
		if _, err := io.WriteString(w, files[name]); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	_, err := s.BuildDockerfile(context.Background(), admin, &b, dockerfile.Request{Name: "crash"}, func(dockerfile.Event) {})
	return err
}

// dying is images that are killed at the point "commit": when the base's files are linked, and the layer begins.
type dying struct {
	*image.Store
	kill func(string)
}

func (d dying) Commit(ctx context.Context, c image.Commit) (image.Status, error) {
	layer := c.Layer
	c.Layer = func(ctx context.Context, to io.Writer) error {
		d.kill("commit")
		return layer(ctx, to)
	}
	return d.Store.Commit(ctx, c)
}

func crashFile() map[string]string {
	return map[string]string{"Dockerfile": "FROM python\nCOPY one /opt/\nRUN echo two > /opt/two\n", "one": "1"}
}
