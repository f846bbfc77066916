// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/images"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/engine/templates"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
)

// saved is an archive as docker save writes it, of an image with a layer of one file of n bytes.
func saved(t *testing.T, tag, version string, n int) []byte {
	t.Helper()
	pack := func(files map[string]string) []byte {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		for name, body := range files {
			if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(body))}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte(body)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	layer := pack(map[string]string{"data": string(bytes.Repeat([]byte("x"), n))})
	sum := sha256.Sum256(layer)
	tags := "[]"
	if tag != "" {
		tags = fmt.Sprintf("[%q]", tag)
	}
	return pack(map[string]string{
		"l":             string(layer),
		"c":             fmt.Sprintf(`{"architecture":%q,"os":"linux","config":{"Env":["V=%s"]},"rootfs":{"diff_ids":["sha256:%s"]}}`, runtime.GOARCH, version, hex.EncodeToString(sum[:])),
		"manifest.json": fmt.Sprintf(`[{"Config":"c","RepoTags":%s,"Layers":["l"]}]`, tags),
	})
}

// others is a server whose images were made by others.
type others struct {
	*enginetest.Server
	store  *image.Store
	dir    string
	keeper *images.Keeper
}

func startOthers(t *testing.T, change ...func(*engine.Options)) *others {
	t.Helper()
	dir := t.TempDir()
	s, err := image.Open(image.Options{Dir: filepath.Join(dir, "images")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	o := &others{store: s, dir: filepath.Join(dir, "images", ".oci")}
	o.bring(t, "a/a:1", "1")
	o.Server = enginetest.Start(t, dir, append([]func(*engine.Options){func(e *engine.Options) { e.Images = s }}, change...)...)
	o.keeper = images.New(o.Engine, s)
	return o
}

const layerSize = 1 << 20

func (o *others) bring(t *testing.T, tag, version string) image.Image {
	t.Helper()
	made, err := o.store.Import(t.Context(), bytes.NewReader(saved(t, tag, version, layerSize)), "", "")
	if err != nil || len(made) != 1 {
		t.Fatalf("%v, %v", made, err)
	}
	return made[0].Image
}

func (o *others) create(t *testing.T, name string) *sandbox.Sandbox {
	t.Helper()
	s, _, err := o.Engine.Create(t.Context(), alice, engine.CreateRequest{Image: name})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// count returns how many directories there are of layers, or of images.
func (o *others) count(t *testing.T, of string) int {
	t.Helper()
	all, err := os.ReadDir(filepath.Join(o.dir, of))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func TestAnImageOfOthersIsDeletedWhenNobodyUsesIt(t *testing.T) {
	t.Parallel()
	o := startOthers(t)
	img, err := o.store.Find(t.Context(), "a/a:1")
	if err != nil {
		t.Fatal(err)
	}
	o.bring(t, "a/a:two", "1")         // another name of the same
	two := o.bring(t, "b/b:1", "else") // another image, of the same layer
	byName, byDigest := o.create(t, "a/a:two"), o.create(t, img.Digest)
	snap, err := o.Engine.CreateSnapshot(t.Context(), alice, string(byName.ID), engine.SnapshotRequest{Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a/a:1", "docker.io/a/a:two", img.Digest, img.Digest[:7+12]} {
		d, err := o.keeper.Inspect(t.Context(), alice, name)
		if err != nil || len(d.Builds) != 1 || len(d.Builds[0].Sandboxes) != 2 || len(d.Builds[0].Snapshots) != 1 {
			t.Fatalf("%s: %+v, %v", name, d, err)
		}
		if len(d.Layers) != 1 || d.Layers[0].Images != 1 {
			t.Errorf("its layers are %+v, want one that another image has", d.Layers)
		}
		_, err = o.keeper.Delete(t.Context(), owner, images.Deletion{Name: name})
		want(t, err, fault.Conflict, "2 sandboxes", "1 snapshot", "--force --dry-run")
	}
	if counts, err := o.keeper.Counts(t.Context(), alice, []string{"a/a:1", "b/b:1"}); err != nil || counts["a/a:1"] != 2 || counts["b/b:1"] != 0 {
		t.Errorf("%v, %v", counts, err)
	}
	_, err = o.keeper.Delete(t.Context(), owner, images.Deletion{Name: "a/a:1", Digest: two.Digest})
	want(t, err, fault.NotFound)
	dry, err := o.keeper.Delete(t.Context(), owner, images.Deletion{Name: "a/a:1", Force: true, DryRun: true})
	if err != nil || len(dry.Use.Sandboxes) != 2 || dry.Bytes == 0 || dry.Bytes >= layerSize {
		t.Errorf("dry: %+v, %v", dry, err)
	}
	got, err := o.keeper.Delete(t.Context(), owner, images.Deletion{Name: "a/a:1", Force: true})
	if err != nil || len(got.Use.Sandboxes) != 2 || len(got.Use.Snapshots) != 1 || got.Bytes != dry.Bytes {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = o.Engine.Get(t.Context(), alice, string(byDigest.ID))
	want(t, err, fault.NotFound)
	_, err = o.Engine.Snapshot(t.Context(), alice, "", string(snap.ID))
	want(t, err, fault.NotFound)
	for _, name := range []string{"a/a:1", "a/a:two", img.Digest} {
		_, err = o.store.Find(t.Context(), name)
		want(t, err, fault.NotFound)
	}
	if o.count(t, "images") != 1 || o.count(t, "layers") != 1 {
		t.Error("the other image, or its layer, is gone")
	}
	if got, err := o.keeper.Delete(t.Context(), owner, images.Deletion{Name: "b/b:1"}); err != nil || got.Bytes < layerSize {
		t.Errorf("%+v, %v", got, err)
	}
	if o.count(t, "images") != 0 || o.count(t, "layers") != 0 || o.count(t, "work") != 0 {
		t.Error("something is left")
	}
	o.bring(t, "a/a:1", "1") // and it can be brought again
	o.create(t, "a/a:1")
}

func TestTheCommandOfAnImageOfOthers(t *testing.T) {
	t.Parallel()
	o := startOthers(t)
	archive := saved(t, "c/c:1", "1", 1)
	archive = bytes.Replace(archive, []byte(`"Env":["V=1"]`), []byte(`"Cmd":["ab"] `), 1) // of the same length
	if _, err := o.store.Import(t.Context(), bytes.NewReader(archive), "", ""); err != nil {
		t.Fatal(err)
	}
	s, none := o.create(t, "c/c:1"), o.create(t, "a/a:1")
	for words, want := range map[string]string{"": "[ab]", "x": "[x]"} {
		got, err := o.keeper.Command(t.Context(), alice, string(s.ID), strings.Fields(words))
		if err != nil || fmt.Sprint(got.Argv) != want {
			t.Errorf("%q: %v, %v", words, got, err)
		}
	}
	_, err := o.keeper.Command(t.Context(), alice, string(none.ID), nil)
	want(t, err, fault.Invalid, "neither an entry point nor a command")
	_, err = o.keeper.Command(t.Context(), mary, string(s.ID), nil)
	want(t, err, fault.NotFound)
}

func TestAnImageThatIsBeingSavedStays(t *testing.T) {
	t.Parallel()
	o := startOthers(t)
	_, err := o.keeper.Save(t.Context(), alice, "a/a:1")
	want(t, err, fault.Denied)
	s, err := o.keeper.Save(t.Context(), owner, "a/a:1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.keeper.Delete(t.Context(), owner, images.Deletion{Name: "a/a:1", Force: true})
	want(t, err, fault.Conflict, "is being saved")
	var archive bytes.Buffer
	if err := s.Write(&archive); err != nil || int64(archive.Len()) != s.Size {
		t.Errorf("%d of %d bytes, %v", archive.Len(), s.Size, err)
	}
	s.Close()
	if _, err := o.keeper.Delete(t.Context(), owner, images.Deletion{Name: "a/a:1"}); err != nil {
		t.Fatal(err)
	}
	made, err := o.store.Import(t.Context(), &archive, "", "")
	if err != nil || made[0].Image.Digest != s.Digest || made[0].Name != "a/a:1" {
		t.Errorf("imported again: %+v, %v", made, err)
	}
}

func TestAPoolOfAnImageOfOthersUsesIt(t *testing.T) {
	t.Parallel()
	o := startOthers(t, func(e *engine.Options) { e.Pools = []prewarm.Pool{{Name: "ahead", Image: "a/a:1", Min: 2}} })
	img, err := o.store.Find(t.Context(), "a/a:1")
	if err != nil {
		t.Fatal(err)
	}
	o.Await(t, "the pool", func() bool { return o.Engine.Pools().Using(img.Digest)["ahead"] == 2 })
	_, err = o.keeper.Delete(t.Context(), owner, images.Deletion{Name: "a/a:1"})
	want(t, err, fault.Conflict, "2 ready sandboxes of the pool ahead")
}

// Of a create and a delete at once either one may win; nobody is left without an image.
func TestCreateAndDeleteOfAnImageOfOthersAtOnce(t *testing.T) {
	t.Parallel()
	o := startOthers(t)
	made, deleted := 0, 0
	for range 40 {
		img := o.bring(t, "a/a:1", "1")
		var s *sandbox.Sandbox
		var createErr, deleteErr error
		var wg sync.WaitGroup
		wg.Go(func() { s, _, createErr = o.Engine.Create(t.Context(), alice, engine.CreateRequest{Image: "a/a:1"}) })
		wg.Go(func() {
			_, deleteErr = o.keeper.Delete(t.Context(), owner, images.Deletion{Name: img.Digest})
		})
		wg.Wait()
		switch {
		case createErr == nil:
			made++
			want(t, deleteErr, fault.Conflict)
			if _, err := os.Stat(filepath.Join(img.Root, "data")); err != nil {
				t.Fatalf("the image of a sandbox that runs is gone: %v", err)
			}
			if err := o.Engine.Delete(t.Context(), alice, string(s.ID)); err != nil {
				t.Fatal(err)
			}
		case fault.Is(createErr, fault.Conflict), fault.Is(createErr, fault.NotFound):
			if deleteErr == nil {
				deleted++
				if _, err := os.Stat(img.Root); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the deleted image is there: %v", err)
				}
			} else {
				want(t, deleteErr, fault.Conflict)
			}
		default:
			t.Fatal(createErr)
		}
	}
	t.Logf("%d creates and %d deletes won", made, deleted)
}

func TestPruneOfImagesOfOthers(t *testing.T) {
	t.Parallel()
	o := startOthers(t)
	used := o.create(t, "a/a:1")
	o.bring(t, "a/a:1", "2") // the name means this one now, and the first has none
	idle := o.bring(t, "", "3")
	got, err := o.keeper.Prune(t.Context(), owner, images.Pruning{DryRun: true})
	if err != nil || len(got.Builds) != 1 || got.Builds[0].Digest != idle.Digest || o.count(t, "images") != 3 {
		t.Errorf("dry: %+v, %v", got, err)
	}
	if got, err = o.keeper.Prune(t.Context(), owner, images.Pruning{}); err != nil || len(got.Builds) != 1 || o.count(t, "images") != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = o.keeper.Prune(t.Context(), owner, images.Pruning{All: true}); err != nil || len(got.Builds) != 1 || got.Builds[0].Name != "a/a:1" || o.count(t, "images") != 1 {
		t.Errorf("all: %+v, %v", got, err)
	}
	if err := o.Engine.Delete(t.Context(), alice, string(used.ID)); err != nil {
		t.Fatal(err)
	}
	if got, err = o.keeper.Prune(t.Context(), owner, images.Pruning{}); err != nil || len(got.Builds) != 1 || got.Bytes < layerSize || o.count(t, "images")+o.count(t, "layers") != 0 {
		t.Errorf("the last: %+v, %v", got, err)
	}
}

// A template keeps its disk whoever asks, and nothing is deleted before that is found.
func TestForceSparesTheDisksOfTemplates(t *testing.T) {
	t.Parallel()
	o := startOthers(t)
	box, _, err := o.Engine.Create(t.Context(), owner, engine.CreateRequest{Image: "a/a:1"})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := o.Engine.CreateSnapshot(t.Context(), owner, string(box.ID), engine.SnapshotRequest{Name: "disk"})
	if err != nil {
		t.Fatal(err)
	}
	made, _, err := o.Creator.Templates.Create(t.Context(), owner, templates.Request{Name: "kept", From: string(snap.ID)})
	if err != nil {
		t.Fatal(err)
	}
	keeper := images.New(o.Creator, o.store)
	for _, dry := range []bool{true, false} {
		_, err = keeper.Delete(t.Context(), owner, images.Deletion{Name: "a/a:1", Force: true, DryRun: dry})
		want(t, err, fault.Conflict, made.Ref())
	}
	if _, err := o.Engine.Get(t.Context(), owner, string(box.ID)); err != nil {
		t.Errorf("the sandbox: %v", err)
	}
	if err := o.Creator.Templates.Delete(t.Context(), owner, "kept"); err != nil {
		t.Fatal(err)
	}
	if _, err := keeper.Delete(t.Context(), owner, images.Deletion{Name: "a/a:1", Force: true}); err != nil {
		t.Errorf("without the template: %v", err)
	}
}
