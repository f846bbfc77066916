// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sandpit.dev/internal/indextest"
)

// shop is what the agent's day is about: a repository, an index with what it requires,
// and a feed that its tests follow.
type shop struct {
	authority []byte // PEM; who vouches for its hosts
	feed      feed
}

// shopHosts are the names of the shop's, which a policy has to allow.
var shopHosts = []string{"files.example", "git.example", "pypi.example", "web.example"}

// openShop serves it until the test ends; nil: this host has no git.
func openShop(t *testing.T, w *world) *shop {
	t.Helper()
	git := repositoryOf(t, os.DirFS("testdata/day/repository"))
	if git == nil {
		return nil
	}
	s := &shop{feed: feed{news: make(chan struct{})}}
	index, files := pythonIndex(t, os.DirFS("testdata/day/index"), map[string][]string{"proof": {"tally>=1.0"}, "tally": nil})
	sites := map[string]http.Handler{"git.example": git, "pypi.example": index, "files.example": files, "web.example": &s.feed}
	authority, certificate := certify(t)
	s.authority = authority
	w.serve(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		host, _, _ := strings.Cut(r.Host, ":")
		if h := sites[host]; h != nil {
			h.ServeHTTP(rw, r)
			return
		}
		http.Error(rw, "the wrong door", http.StatusMisdirectedRequest)
	}), certificate)
	return s
}

// pythonIndex serves packages, each of a module of the folder and what it requires: their
// index, and their files, which are on another host.
func pythonIndex(t *testing.T, folder fs.FS, packages map[string][]string) (index, files http.Handler) {
	t.Helper()
	pages, wheels := http.NewServeMux(), http.NewServeMux()
	for name, requires := range packages {
		module, err := fs.ReadFile(folder, name+".py")
		if err != nil {
			t.Fatal(err)
		}
		file, content := indextest.Wheel(t, name, string(module), requires...)
		pages.Handle("GET /simple/"+name+"/", text("text/html",
			fmt.Sprintf(`<a href="https://files.example/%s#sha256=%x">%[1]s</a>`, file, sha256.Sum256(content))))
		wheels.Handle("GET /"+file, text("application/octet-stream", string(content)))
	}
	return pages, wheels
}

// feed tells the prices 100, 200 and so on, each when there is one, and then its end. It is
// safe for concurrent use.
type feed struct {
	mu    sync.Mutex
	count int
	ended bool
	news  chan struct{} // closed when there are any
}

// begin begins it anew.
func (f *feed) begin() { f.change(func() { f.count, f.ended = 0, false }) }

// add lets the feed have one more price.
func (f *feed) add() { f.change(func() { f.count++ }) }

// end lets it end.
func (f *feed) end() { f.change(func() { f.ended = true }) }

func (f *feed) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
	close(f.news)
	f.news = make(chan struct{})
}

// ServeHTTP tells what there is since a number of prices, and then what comes.
func (f *feed) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	told, err := strconv.Atoi(r.URL.Query().Get("since"))
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	for {
		f.mu.Lock()
		count, ended, news := f.count, f.ended, f.news
		f.mu.Unlock()
		for ; told < count; told++ {
			_, _ = fmt.Fprintln(rw, 100*(told+1))
		}
		if ended {
			_, _ = fmt.Fprintln(rw, "end")
			return
		}
		_ = http.NewResponseController(rw).Flush() // who has gone is seen below
		select {
		case <-news:
		case <-r.Context().Done():
			return
		}
	}
}
