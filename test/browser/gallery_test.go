// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/test/browser"
)

// sizes are those that pages are looked at in: a telephone, a small screen, a large one.
var sizes = [...]struct{ width, height int }{{360, 740}, {1280, 800}, {1920, 1080}}

// tallest is how much of a page a picture has.
const tallest = 2400

// gallery is a directory with a picture of each page, in each theme and size, and a page that has each beside the last one
// that was accepted. Nil is one that keeps nothing.
type gallery struct {
	dir   string
	Shots []shot
}

type shot struct {
	Name, Theme, Now string
	Width            int
	Accepted         string  // "": there is none
	Changed          float64 // percent of pixels
}

//go:embed testdata/gallery.html
var galleryPage string

// newGallery returns one where SANDPIT_TEST_PICTURES says a directory.
func newGallery(t *testing.T) *gallery {
	t.Helper()
	dir := os.Getenv("SANDPIT_TEST_PICTURES")
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(dir, "now"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &gallery{dir: dir}
}

// add makes pictures of what a tab shows, in each size.
func (g *gallery) add(t *testing.T, tab context.Context, name, theme string) {
	t.Helper()
	if g == nil {
		return
	}
	for _, size := range sizes {
		picture, err := wholePicture(t, tab, size.width, size.height)
		if err != nil {
			t.Fatal(err)
		}
		s := shot{Name: name, Theme: theme, Width: size.width}
		file := fmt.Sprintf("%s-%s-%d.png", strings.Trim(strings.NewReplacer("/", "-", " ", "-").Replace(name), "-"), theme, size.width)
		s.Now = filepath.Join("now", file)
		if err := os.WriteFile(filepath.Join(g.dir, s.Now), picture, 0o644); err != nil {
			t.Fatal(err)
		}
		accepted, err := os.ReadFile(filepath.Join(g.dir, "accepted", file))
		switch {
		case err == nil:
			s.Accepted, s.Changed = filepath.Join("accepted", file), changed(t, accepted, picture)
		case !errors.Is(err, fs.ErrNotExist):
			t.Fatal(err)
		}
		g.Shots = append(g.Shots, s)
	}
	if err := browser.Size(tab, 0, 0); err != nil {
		t.Fatal(err)
	}
}

// close writes the page.
func (g *gallery) close(t *testing.T) {
	t.Helper()
	if g == nil {
		return
	}
	var out bytes.Buffer
	err := template.Must(template.New("gallery").Parse(galleryPage)).Execute(&out, g)
	file := filepath.Join(g.dir, "index.html")
	if err == nil {
		err = os.WriteFile(file, out.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d pictures: %s", len(g.Shots), file)
}

// wholePicture is one of all of a page, in a window of this size.
func wholePicture(t *testing.T, tab context.Context, width, height int) ([]byte, error) {
	t.Helper()
	if err := browser.Size(tab, width, height); err != nil {
		return nil, err
	}
	const settled = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 100))))"
	await[any](t, tab, settled)
	if all := await[int](t, tab, "document.documentElement.scrollHeight"); all > height {
		// What is above and below: the window is made as high as the page.
		if err := browser.Size(tab, width, min(all, tallest)); err != nil {
			return nil, err
		}
		await[any](t, tab, settled)
	}
	return browser.Picture(tab)
}

// changed is how much of two pictures differs.
func changed(t *testing.T, before, after []byte) float64 {
	t.Helper()
	a, err := png.Decode(bytes.NewReader(before))
	if err != nil {
		t.Fatal(err)
	}
	b, err := png.Decode(bytes.NewReader(after))
	if err != nil {
		t.Fatal(err)
	}
	both := a.Bounds().Union(b.Bounds())
	other := 0
	for y := both.Min.Y; y < both.Max.Y; y++ {
		for x := both.Min.X; x < both.Max.X; x++ {
			if a.At(x, y) != b.At(x, y) {
				other++
			}
		}
	}
	return 100 * float64(other) / float64(both.Dx()*both.Dy())
}

// fits finds out whether a page is read by scrolling in one direction alone, in each size: the smallest is what 400 % of zoom
// make of a small screen, too.
func (p *person) fits(name string) {
	p.t.Helper()
	for _, size := range sizes {
		if err := browser.Size(p.tab, size.width, size.height); err != nil {
			p.t.Fatal(err)
		}
		if wide := await[[]string](p.t, p.tab, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(document.documentElement.scrollWidth <= innerWidth ? [] :
			["all of it"].concat([...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 100)).slice(0, 5))))))`); len(wide) > 0 {
			p.t.Errorf("%s is wider than %d pixels: %q", name, size.width, wide)
		}
	}
	if err := browser.Size(p.tab, 0, 0); err != nil {
		p.t.Fatal(err)
	}
}
