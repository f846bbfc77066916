// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/fault"
)

// sparse is an archive of a file that says to have a size that it does not bring.
func sparse(size int64) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	_ = w.WriteHeader(&tar.Header{Name: "big", Typeflag: tar.TypeReg, Mode: 0o644, Size: size, Format: tar.FormatPAX})
	return b.Bytes()
}

func TestHostileLayersAreRefused(t *testing.T) {
	deep := strings.Repeat("d/", maxDepth+1) + "f"
	for name, layer := range map[string][]byte{
		"an absolute name":               tarOf(t, file{name: "/etc/cron.d/x", body: "x"}),
		"a name with ..":                 tarOf(t, file{name: "a/../../x", body: "x"}),
		"only ..":                        tarOf(t, file{name: "..", body: "x"}),
		"a hard link with ..":            tarOf(t, file{name: "x", kind: tar.TypeLink, to: "../../../../etc/passwd"}),
		"an absolute hard link":          tarOf(t, file{name: "x", kind: tar.TypeLink, to: "/etc/passwd"}),
		"a hard link to what is not":     tarOf(t, file{name: "x", kind: tar.TypeLink, to: "etc/passwd"}),
		"a hard link through a link":     tarOf(t, file{name: "l", kind: tar.TypeSymlink, to: "/etc"}, file{name: "x", kind: tar.TypeLink, to: "l/passwd"}),
		"a hard link to a directory":     tarOf(t, file{name: "d/"}, file{name: "x", kind: tar.TypeLink, to: "d"}),
		"a whiteout of nothing":          tarOf(t, file{name: "a/.wh."}),
		"a whiteout of .":                tarOf(t, file{name: "a/.wh.."}),
		"a whiteout of ..":               tarOf(t, file{name: "a/.wh..."}),
		"a whiteout with a slash":        tarOf(t, file{name: ".wh.a/b", body: "x"}),
		"a whiteout with .. and a slash": tarOf(t, file{name: "a/.wh.../../../x"}),
		"a whiteout that is a link":      tarOf(t, file{name: ".wh.a", kind: tar.TypeSymlink, to: "/"}),
		"an opaque mark that is a link":  tarOf(t, file{name: opaqueMark, kind: tar.TypeSymlink, to: "/"}),
		"a file as a directory":          tarOf(t, file{name: "f", body: "x"}, file{name: "f/g", body: "x"}),
		"links in a circle":              tarOf(t, file{name: "a", kind: tar.TypeSymlink, to: "b"}, file{name: "b", kind: tar.TypeSymlink, to: "a"}, file{name: "a/x", body: "x"}),
		"a link to itself":               tarOf(t, file{name: "a", kind: tar.TypeSymlink, to: "a/a/a"}, file{name: "a/x", body: "x"}),
		"a root that is a link":          tarOf(t, file{name: ".", kind: tar.TypeSymlink, to: "/"}),
		"a deep name":                    tarOf(t, file{name: deep, body: "x"}),
		"a long part":                    tarOf(t, file{name: strings.Repeat("x", maxPartBytes+1), body: "x"}),
		"an unknown kind":                tarOf(t, file{name: "x", kind: 'Z'}),
		"capabilities that are none":     tarOf(t, file{name: "x", body: "x", xattr: map[string]string{capability: "all of them"}}),
		"many attributes":                tarOf(t, file{name: "x", body: "x", xattr: map[string]string{"user.a": strings.Repeat("x", maxXattrBytes)}}),
		"more than fits":                 sparse(1 << 50),
		"more than a number":             sparse(1<<63 - 1),
		"no archive":                     bytes.Repeat([]byte("not a tar archive at all "), 100),
		"gzip that is none":              append([]byte{0x1f, 0x8b}, bytes.Repeat([]byte("x"), 600)...),
		"zstd that is none":              append([]byte{0x28, 0xb5, 0x2f, 0xfd}, bytes.Repeat([]byte("x"), 600)...),
	} {
		t.Run(name, func(t *testing.T) {
			s := opened(t)
			_, err := s.Import(t.Context(), bytes.NewReader(layoutOf(t, "x/y:1", configOf(t, nil, layer), plainly, layer)), "")
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%v, want it refused", err)
			}
			if left := leftovers(t, s); len(left) > 0 || len(s.List()) > 0 {
				t.Errorf("left behind: %v, %v", left, s.List())
			}
		})
	}
}

// TestLinksLeadNowhereElse tries to write outside of an image through links of its own, in a layer and
// between two.
func TestLinksLeadNowhereElse(t *testing.T) {
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	up := strings.Repeat("../", 30)
	first := tarOf(t,
		file{name: "abs", kind: tar.TypeSymlink, to: outside}, file{name: "rel", kind: tar.TypeSymlink, to: up + outside[1:]}, file{name: "f", kind: tar.TypeSymlink, to: secret},
		file{name: "etc", kind: tar.TypeSymlink, to: outside}, file{name: "abs/secret", body: "one"}, file{name: "rel/secret", body: "two"},
		file{name: "f", body: "three"}, file{name: "etc/passwd", body: "root:x:0:0::/:/bin/sh\n"})
	second := tarOf(t,
		file{name: "abs/.wh.secret"}, file{name: "rel/.wh..wh..opq"}, file{name: "abs/other", body: "four"}, file{name: "f/", mode: 0o700}, file{name: "f/x", body: "five"})
	s := opened(t)
	_, err := s.Import(t.Context(), bytes.NewReader(layoutOf(t, "x/y:1", configOf(t, nil, first, second), gzipped, first, second)), "")
	if !fault.Is(err, fault.Invalid) { // its /etc is a link
		t.Errorf("%v", err)
	}
	third := tarOf(t, file{name: ".wh.etc"}, file{name: "etc/", mode: 0o755})
	img := imported(t, s, layoutOf(t, "x/y:1", configOf(t, nil, first, second, third), gzipped, first, second, third), "")
	if got, err := os.ReadFile(secret); err != nil || string(got) != "kept" {
		t.Errorf("a file outside became %q (%v)", got, err)
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside there is %v (%v)", entries, err)
	}
	if got := read(t, img, outside[1:]+"/other"); got != "four" {
		t.Errorf("what the link means to the image has %q", got)
	}
}

// TestAccountsBehindLinksAreTheImagesOwn has the files of accounts lead out of the root.
func TestAccountsBehindLinksAreTheImagesOwn(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "passwd")
	if err := os.WriteFile(outside, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	layer := tarOf(t, file{name: "etc/passwd", kind: tar.TypeSymlink, to: outside}, file{name: "etc/group", kind: tar.TypeSymlink, to: "../../.." + outside},
		file{name: "etc/shadow", kind: tar.TypeSymlink, to: outside}, file{name: "etc/resolv.conf", kind: tar.TypeSymlink, to: outside}, file{name: "etc/hosts", kind: tar.TypeSymlink, to: outside},
		file{name: "home", kind: tar.TypeSymlink, to: filepath.Dir(outside)}, file{name: "proc", kind: tar.TypeSymlink, to: "/"})
	img := imported(t, opened(t), savedOf(t, "x:1", configOf(t, nil, layer), layer), "")
	if got, err := os.ReadFile(outside); err != nil || string(got) != "kept" {
		t.Errorf("a file outside became %q (%v)", got, err)
	}
	if got := read(t, img, "etc/passwd"); !strings.Contains(got, "sandbox:x:1000:") {
		t.Errorf("passwd %q", got)
	}
}

func TestAnEntryTwiceIsTheLast(t *testing.T) {
	layer := tarOf(t, file{name: "a", body: "one"}, file{name: "a", kind: tar.TypeSymlink, to: "b"}, file{name: "a", body: "two"}, file{name: "b", body: "b"},
		file{name: "d/x", body: "x"}, file{name: "d", body: "file"}, file{name: "e", body: "file"}, file{name: "e/", mode: 0o700}, file{name: "e/y", body: "y"})
	img := imported(t, opened(t), savedOf(t, "x:1", configOf(t, nil, layer), layer), "")
	for name, want := range map[string]string{"a": "two", "b": "b", "d": "file", "e/y": "y"} {
		if got := read(t, img, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestBoundsHold(t *testing.T) {
	many := make([]file, 300)
	for i := range many {
		many[i] = file{name: "f" + strings.Repeat("x", i%200) + string(rune('a'+i/200)), body: "x"}
	}
	zeros := tarOf(t, file{name: "zeros", body: strings.Repeat("\x00", 2<<20)})
	tail := append(tarOf(t, file{name: "a", body: "x"}), make([]byte, 8<<20)...) // after the archive's end
	for name, layer := range map[string][]byte{"many files": tarOf(t, many...), "a gzip bomb": zeros, "a gzip bomb after the end": tail} {
		t.Run(name, func(t *testing.T) {
			s := opened(t)
			s.limits.Bytes, s.limits.Files = 1<<20, 200
			if name == "a gzip bomb after the end" {
				s.limits.Files = 10
			}
			_, err := s.Import(t.Context(), bytes.NewReader(layoutOf(t, "x/y:1", configOf(t, nil, layer), gzipped, layer)), "")
			if !fault.Is(err, fault.Invalid) || len(leftovers(t, s)) > 0 {
				t.Errorf("%v, left %v", err, leftovers(t, s))
			}
		})
	}
	t.Run("names that fill the memory", func(t *testing.T) {
		var files []file
		for i := range 1200 {
			files = append(files, file{name: fmt.Sprintf("%d/", i) + strings.Repeat(strings.Repeat("n", 60)+"/", 60)})
		}
		dir := t.TempDir()
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		u := &unpacker{root: root, left: newBudget(Limits{}, dir), layer: new(layer), known: map[string]bool{}, times: map[string]time.Time{}, held: maxHeld - 1000}
		defer u.leave()
		for _, f := range files {
			if err = u.entry(&tar.Header{Name: f.name, Typeflag: tar.TypeDir, Mode: 0o755}, nil); err != nil {
				break
			}
		}
		if !fault.Is(err, fault.Invalid) {
			t.Error(err)
		}
	})
	t.Run("an archive without end", func(t *testing.T) {
		s := opened(t)
		s.limits.Bytes = 1 << 20
		_, err := s.Import(t.Context(), io.MultiReader(bytes.NewReader(sparse(1<<20)), endless{}), "")
		if err == nil || len(leftovers(t, s)) > 0 {
			t.Errorf("%v, left %v", err, leftovers(t, s))
		}
	})
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestDescriptionsThatLieAreRefused changes one thing of an image that is right.
func TestDescriptionsThatLieAreRefused(t *testing.T) {
	layer := tarOf(t, file{name: "a", body: "x"})
	other := tarOf(t, file{name: "a", body: "y"})
	config := configOf(t, nil, layer)
	right := layoutOf(t, "x/y:1", config, gzipped, layer)
	edit := func(from, to string) []byte {
		if !bytes.Contains(right, []byte(from)) || len(from) != len(to) {
			t.Fatalf("%q cannot become %q", from, to)
		}
		return bytes.ReplaceAll(right, []byte(from), []byte(to))
	}
	hex := strings.TrimPrefix(digestOf(gzipped(t, layer)), digestPrefix)
	manifestOf := func(config, l object) []byte {
		return jsonOf(t, object{"schemaVersion": 2, "config": config, "layers": []object{l}})
	}
	blobFile := func(data []byte) file {
		return file{name: blobsFolder + strings.TrimPrefix(digestOf(data), digestPrefix), body: string(data)}
	}
	about := func(data []byte, media string) object {
		return object{"mediaType": media, "digest": digestOf(data), "size": len(data)}
	}
	layout := func(top object, blobs ...[]byte) []byte {
		files := []file{{name: "index.json", body: string(jsonOf(t, top))}}
		for _, b := range blobs {
			files = append(files, blobFile(b))
		}
		return tarOf(t, files...)
	}
	const layerMedia, configMedia = "application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.config.v1+json"
	index := func(list ...object) object {
		return object{"schemaVersion": 2, "mediaType": ociIndex, "manifests": list}
	}
	with := func(o object, key string, value any) object {
		o[key] = value
		return o
	}
	// An index that leads to itself cannot be made with a right digest; a long chain can.
	chain := jsonOf(t, index())
	blobs := [][]byte{chain}
	for range 10 {
		chain = jsonOf(t, index(about(chain, ociIndex)))
		blobs = append(blobs, chain)
	}
	short := manifestOf(with(about(config, configMedia), "size", 3), about(layer, layerMedia))
	twoIDs := configOf(t, nil, layer, other)
	wrongID := configOf(t, nil, other)
	kept := manifestOf(about(config, configMedia), with(about(layer, layerMedia), "mediaType", "application/vnd.docker.image.rootfs.foreign.diff.tar"))
	oddEnv := configOf(t, object{"config": object{"Env": []string{"no value"}}}, layer)
	for name, archive := range map[string][]byte{
		"a blob that is not its digest":     edit("blobs/sha256/"+hex, "blobs/sha256/"+strings.Repeat("0", 64)),
		"a layer of other files":            layout(index(about(manifestOf(about(wrongID, configMedia), about(layer, layerMedia)), ociManifest)), manifestOf(about(wrongID, configMedia), about(layer, layerMedia)), wrongID, layer),
		"a config of more layers":           layout(index(about(manifestOf(about(twoIDs, configMedia), about(layer, layerMedia)), ociManifest)), manifestOf(about(twoIDs, configMedia), about(layer, layerMedia)), twoIDs, layer),
		"a config of another size":          layout(index(about(short, ociManifest)), short, config, layer),
		"a manifest of another size":        layout(index(with(about(short, ociManifest), "size", 1)), short),
		"a negative size":                   layout(index(with(about(short, ociManifest), "size", -1)), short),
		"a digest of another kind":          layout(index(with(about(short, ociManifest), "digest", "md5:abc")), short),
		"a digest that is a path":           layout(index(with(about(short, ociManifest), "digest", "sha256:../../../../etc/passwd")), short),
		"a manifest that is missing":        layout(index(about(short, ociManifest))),
		"indexes without end":               layout(index(about(chain, ociIndex)), blobs...),
		"an index of nothing":               layout(index()),
		"a layer that is kept elsewhere":    layout(index(about(kept, ociManifest)), kept, config, layer),
		"a variable without a value":        layout(index(about(manifestOf(about(oddEnv, configMedia), about(layer, layerMedia)), ociManifest)), manifestOf(about(oddEnv, configMedia), about(layer, layerMedia)), oddEnv, layer),
		"a manifest of the first schema":    layout(object{"schemaVersion": 1, "manifests": []object{}}),
		"no JSON":                           tarOf(t, file{name: "index.json", body: "no"}),
		"JSON within JSON within JSON":      tarOf(t, file{name: "index.json", body: strings.Repeat("[", 100_000)}),
		"a large index":                     tarOf(t, file{name: "index.json", body: strings.Repeat(" ", maxManifest+1)}),
		"no image":                          tarOf(t, file{name: "hello", body: "x"}),
		"a name twice":                      tarOf(t, file{name: "index.json", body: "{}"}, file{name: "./index.json", body: "{}"}),
		"links in a circle":                 tarOf(t, file{name: "index.json", kind: tar.TypeSymlink, to: "manifest.json"}, file{name: "manifest.json", kind: tar.TypeSymlink, to: "index.json"}),
		"an index.json elsewhere":           tarOf(t, file{name: "index.json", kind: tar.TypeSymlink, to: "/etc/passwd"}),
		"docker save, a path for a layer":   tarOf(t, file{name: "manifest.json", body: `[{"Config":"c.json","Layers":["../../../etc/passwd"]}]`}, file{name: "c.json", body: string(config)}),
		"docker save, a config that lies":   tarOf(t, file{name: "manifest.json", body: `[{"Config":"` + strings.Repeat("0", 64) + `.json","Layers":["l"]}]`}, file{name: strings.Repeat("0", 64) + ".json", body: string(config)}, file{name: "l", body: string(layer)}),
		"docker save, a layer that lies":    savedOf(t, "x:1", config, other),
		"docker save, of too many layers":   tarOf(t, file{name: "manifest.json", body: `[{"Config":"c.json","Layers":["l"` + strings.Repeat(`,"l"`, maxLayers) + `]}]`}),
		"docker save, of nothing":           tarOf(t, file{name: "manifest.json", body: "[]"}),
		"docker save, of a wrong JSON type": tarOf(t, file{name: "manifest.json", body: "{}"}),
	} {
		t.Run(name, func(t *testing.T) {
			s := opened(t)
			_, err := s.Import(t.Context(), bytes.NewReader(archive), "")
			if !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Unsupported) {
				t.Errorf("%v, want it refused", err)
			}
			if left := leftovers(t, s); len(left) > 0 || len(s.List()) > 0 {
				t.Errorf("left behind: %v, %v", left, s.List())
			}
		})
	}
	imported(t, opened(t), right, "")
}

func FuzzUnpack(f *testing.F) {
	f.Add(tarOf(f, file{name: "a/b", body: "x"}, file{name: "a/l", kind: tar.TypeSymlink, to: "../.."}, file{name: "a/l/c", body: "y"}, file{name: ".wh.z"}))
	f.Add(gzipped(f, tarOf(f, file{name: "x", kind: tar.TypeLink, to: "y"})))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		canary := filepath.Join(dir, "canary")
		if err := os.WriteFile(canary, []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, "in"), 0o700); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(filepath.Join(dir, "in"))
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		r, err := expand(bytes.NewReader(data))
		if err != nil {
			return
		}
		defer r.Close()
		_, err = unpack(t.Context(), io.LimitReader(r, 1<<20), root, false, newBudget(Limits{Bytes: 1 << 20, Files: 1000, Spared: 1}, dir))
		if _, ok := errors.AsType[*os.PathError](err); ok && !errors.Is(err, os.ErrPermission) {
			t.Logf("unpack: %v", err)
		}
		entries, err := os.ReadDir(dir)
		if got, rerr := os.ReadFile(canary); err != nil || rerr != nil || string(got) != "kept" || len(entries) != 2 {
			t.Fatalf("it reached out: %v, canary %q (%v)", entries, got, rerr)
		}
		_ = removeAll(filepath.Join(dir, "in"))
	})
}
