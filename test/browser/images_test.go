// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"sandpit.dev/test/browser"
)

// imageOf is an image of two layers, of which the second is large and compresses to no less.
type imageOf struct {
	config, manifest []byte
	layers           [2][]byte
}

type tarFile struct {
	name string
	body []byte
}

// tarOf is an archive of files.
func tarOf(t *testing.T, files ...tarFile) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.body)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func newImage(t *testing.T) (i imageOf) {
	t.Helper()
	noise := make([]byte, 4<<20)
	_, _ = rand.Read(noise) // never fails
	var ids, descriptors []string
	for n, files := range [][]tarFile{{{"first.txt", noise[:64]}}, {{"second.bin", noise}}} {
		plain := tarOf(t, files...)
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err := z.Write(plain); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		i.layers[n] = packed.Bytes()
		ids = append(ids, strconv.Quote(digestOf(plain)))
		descriptors = append(descriptors, fmt.Sprintf(`{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":%q,"size":%d}`, digestOf(i.layers[n]), len(i.layers[n])))
	}
	i.config = fmt.Appendf(nil, `{"architecture":%q,"os":"linux","config":{"Env":["A=1"]},"rootfs":{"type":"layers","diff_ids":[%s]}}`, runtime.GOARCH, strings.Join(ids, ","))
	i.manifest = fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":%d},"layers":[%s]}`, manifestType, digestOf(i.config), len(i.config), strings.Join(descriptors, ","))
	return i
}

const manifestType = "application/vnd.oci.image.manifest.v1+json"

// archive is the image as a tar of an OCI layout, by a name.
func (i imageOf) archive(t *testing.T, name string) []byte {
	t.Helper()
	index := fmt.Appendf(nil, `{"schemaVersion":2,"manifests":[{"mediaType":%q,"digest":%q,"size":%d,"annotations":{"org.opencontainers.image.ref.name":%q}}]}`, manifestType, digestOf(i.manifest), len(i.manifest), name)
	files := []tarFile{{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"index.json", index}}
	for _, data := range [][]byte{i.config, i.manifest, i.layers[0], i.layers[1]} {
		files = append(files, tarFile{"blobs/sha256/" + strings.TrimPrefix(digestOf(data), "sha256:"), data})
	}
	return tarOf(t, files...)
}

// slowRegistry is a registry that has the image as team/app:1, and sends half of its second layer until it is released.
func (i imageOf) slowRegistry(t *testing.T) (host string, release func()) {
	t.Helper()
	inner, hold := registry.New(registry.Logger(log.New(io.Discard, "", 0))), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if data := i.layers[1]; r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/blobs/"+digestOf(data)) {
			w.Header().Set("Content-Length", strconv.Itoa(len(data)))
			_, _ = w.Write(data[:len(data)/2])
			_ = http.NewResponseController(w).Flush()
			select {
			case <-hold:
			case <-r.Context().Done():
				return
			}
			_, _ = w.Write(data[len(data)/2:])
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	send := func(method, path, kind string, data []byte) {
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/v2/team/app/"+path, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kind)
		a, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Body.Close(); err != nil || a.StatusCode/100 != 2 {
			t.Fatalf("%s: %s, %v", path, a.Status, err)
		}
	}
	for _, data := range [][]byte{i.config, i.layers[0], i.layers[1]} {
		send(http.MethodPost, "blobs/uploads/?digest="+digestOf(data), "application/octet-stream", data)
	}
	send(http.MethodPut, "manifests/1", manifestType, i.manifest)
	return strings.TrimPrefix(s.URL, "http://"), func() { close(hold) }
}

func TestAnImageIsPulledAndImported(t *testing.T) {
	p := needBrowser(t)
	made := newImage(t)
	host, release := made.slowRegistry(t)
	s := serve(t, fmt.Sprintf("images: {registries: [{name: %q, private: true, plain_http: true}]}\n", host))
	// The tests' images are shared: nothing of this stays.
	t.Cleanup(func() {
		for _, name := range []string{host + "/team/app:1", "brought:1"} {
			if out, err := s.command("image", "rm", name).CombinedOutput(); err != nil {
				t.Logf("delete %s: %v %s", name, err, out) // it may not have come to be
			}
		}
	})
	one := s.signedIn(t, p)
	one.presses("Images")
	one.presses("Pull an image")
	one.fills("Reference", host+"/team/app:1")
	one.presses("Pull it")
	const rows = "[...document.querySelectorAll('section[aria-label=Layers] tbody tr')]"
	one.until("one layer is here, and half of the other", "(r => r.length === 2 && r[0].innerText.includes('ready') && r[1].innerText.includes('pulling') && r[1].querySelector('progress').value === %d && r[1].querySelector('progress').max === %d)(%s)", len(made.layers[1])/2, len(made.layers[1]), rows)
	one.until("it is told by bytes, too", "document.querySelector('table.images').innerText.includes('2.1 of 4.2 MB, 2 layers')")
	one.checks("a pull", func(theme string) { one.picture("pull-" + theme) })
	if got := s.do(t, "image", "ls", "-o", "json"); !strings.Contains(got, `"status": "pulling"`) || !strings.Contains(got, digestOf(made.layers[1])) {
		t.Errorf("by the command line: %s", got)
	}
	release()
	one.until("it is here, and what is in it", "!document.querySelector('section[aria-label=Layers]') && document.querySelector('section[aria-label=\"What is inside\"]')?.innerText.includes('Files')")
	if err := browser.Visit(one.tab, s.url+"/console/images"); err != nil {
		t.Fatal(err)
	}
	s.do(t, "image", "rm", host+"/team/app:1")
	for _, c := range one.take() {
		t.Errorf("the browser says: %s", c)
	}

	one.presses("Import an archive")
	choose := func(prefix []byte, more int) {
		await[bool](t, one.tab, `(i => { const d = new DataTransfer(), begin = Uint8Array.from(atob(%q), c => c.charCodeAt(0)); d.items.add(new File([begin, new Uint8Array(%d)], 'image.tar')); i.files = d.files; return i.dispatchEvent(new Event('change')) })(document.querySelector('input[type=file]'))`, base64.StdEncoding.EncodeToString(prefix), more)
	}
	// Of 200 MB of a layer some are sent when it is broken off.
	const large = 200 << 20
	var head bytes.Buffer
	if err := tar.NewWriter(&head).WriteHeader(&tar.Header{Name: "blobs/sha256/" + strings.Repeat("a", 64), Mode: 0o644, Size: large, Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	before := s.do(t, "image", "ls", "-q")
	choose(head.Bytes(), large)
	if got := await[int](t, one.tab, `new Promise(done => { const look = () => { const p = document.querySelector('progress[aria-label="Upload of image.tar"]'); if (p && p.value > 0) { const at = p.value; p.parentElement.querySelector('button').click(); done(at) } else setTimeout(look, 1) }; look() })`); got >= large {
		t.Fatalf("it was canceled when %d bytes were sent", got)
	}
	one.reads("It was broken off. Nothing was made of what had been sent.")
	if after := s.do(t, "image", "ls", "-q"); after != before {
		t.Errorf("there were the images %q, and are %q", before, after)
	}
	one.take()
	choose(made.archive(t, "brought:1"), 0)
	one.reads("It is imported.")
	one.until("it is listed", "[...document.querySelectorAll('table.images tr')].some(r => r.innerText.includes('brought:1') && r.innerText.includes('ready'))")
	if err := browser.Visit(one.tab, s.url+"/console/images?image="+"brought:1"); err != nil {
		t.Fatal(err)
	}
	one.reads("Builds on this server")
	for _, c := range one.take() {
		t.Errorf("the browser says: %s", c)
	}
}
