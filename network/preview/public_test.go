// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"sandpit.dev/network/preview"
)

func TestAPublicPreviewIsSoByItsHostAlone(t *testing.T) {
	h := open(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "a=b; Domain=localhost")
		fmt.Fprintf(w, "%s|%s|%s|%s", r.Host, r.Header.Get("Authorization"), r.Header.Get("X-Sandpit-Token"), r.Header.Get("Cookie"))
	})
	host := "8000-" + web + ".localhost"
	if resp := h.askHost(t, host); resp.StatusCode != 401 {
		t.Errorf("a private one: %s", resp.Status)
	}
	h.show(web, preview.Seen{Project: "default", Public: true})
	resp := h.askHost(t, host, "Authorization", "Bearer "+owner, "X-Sandpit-Token", owner, "Cookie", "sandpit_preview=x; own=1", "Origin", "https://elsewhere.example", "Sec-Fetch-Site", "cross-site")
	if b, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 || string(b) != host+"|||own=1" {
		t.Errorf("got %s %q, %v", resp.Status, b, err)
	}
	if got := resp.Header.Get("Set-Cookie"); got != "a=b" {
		t.Errorf("its cookie is for more than itself: %q", got)
	}
	for name, place := range map[string][2]string{
		"another port": {"8001-" + web + ".localhost", "/page"}, "another sandbox": {"8000-" + other + ".localhost", "/page"},
		"the path": {"127.0.0.1", "/preview/" + web + "/8000/page"},
	} {
		if a := h.get(place[0], place[1]); a.StatusCode != 401 {
			t.Errorf("%s: got %s", name, a.Status)
		}
	}
	h.show(web, preview.Seen{Project: "strange", Public: true}) // of whose project the caller is not
	if resp := h.askHost(t, host); resp.StatusCode != 404 {
		t.Errorf("got %s", resp.Status)
	}
}

func TestWhatIsOpenOfAPublicPreviewEndsWhenItIsPrivate(t *testing.T) {
	h := open(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "begun")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	h.show(web, preview.Seen{Project: "default", Public: true})
	resp := h.askHost(t, "8000-"+web+".localhost")
	if _, err := io.ReadFull(resp.Body, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	h.show(web, preview.Seen{Project: "default"})
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the stream ended as if it were whole")
	}
}

func TestTheHostThatAProgramSees(t *testing.T) {
	h := open(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://"+r.Host+"/next?a=b")
		fmt.Fprintf(w, "%s|%s|%s", r.Host, r.Header.Get("Origin"), r.Header.Get("X-Forwarded-Host"))
	})
	host := "8000-" + web + ".localhost"
	link := h.grant(onRecord, preview.Grant{Project: "default", Sandbox: web, Port: 8000})
	for seen, want := range map[string]string{"localhost": "localhost:8000", "app.example": "app.example", "app.example:81": "app.example:81"} {
		h.show(web, preview.Seen{Project: "default", Public: true, Host: seen})
		for _, at := range []string{host, link} {
			resp := h.askHost(t, at, "Origin", "http://"+at)
			b, err := io.ReadAll(resp.Body)
			if err != nil || string(b) != want+"|http://"+want+"|"+at {
				t.Errorf("%s by %s: got %q, %v", seen, at, b, err)
			}
			if got := resp.Header.Get("Location"); got != "/next?a=b" {
				t.Errorf("%s by %s: it leads to %q", seen, at, got)
			}
		}
		if resp := h.askHost(t, host, "Origin", "https://elsewhere.example"); resp.StatusCode != 200 {
			t.Errorf("got %s", resp.Status)
		} else if b, _ := io.ReadAll(resp.Body); string(b) != want+"|https://elsewhere.example|"+host {
			t.Errorf("another's origin: %q", b)
		}
	}
}

// TestAProgramCannotTellWhichTokensAreValid: whoever visits it may be the one who wrote it, and guesses.
func TestAProgramCannotTellWhichTokensAreValid(t *testing.T) {
	h := open(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header["Authorization"]) })
	host := "8000-" + web + ".localhost"
	h.show(web, preview.Seen{Project: "default", Public: true})
	named := h.grant(onRecord, preview.Grant{Project: "default", Sandbox: web, Port: 8000})
	link := h.link(web, 8000)
	jwt := "eyJhbGciOiJub25lIn0.e30."
	for _, opaque := range []bool{false, true} {
		h.opaque = opaque
		for what, visit := range map[string]func(token string) *http.Response{
			"public":           func(token string) *http.Response { return h.askHost(t, host, "Authorization", "Bearer "+token) },
			"by a link's name": func(token string) *http.Response { return h.askHost(t, named, "Authorization", "bearer "+token) },
			"beside a link's token": func(token string) *http.Response {
				return h.askHost(t, host, "Authorization", "Bearer  "+token, "X-Sandpit-Token", link)
			},
		} {
			for token, shown := range map[string]bool{
				owner: false, mallet: false, "spt_guess": false, "sps_guess.guess": false, "spt_": false,
				"its-own": !opaque, jwt: true,
			} {
				resp := visit(token)
				b, err := io.ReadAll(resp.Body)
				if err != nil || resp.StatusCode != 200 || (string(b) != "[]") != shown {
					t.Errorf("opaque %v, %s, %q: got %s %q, %v", opaque, what, token, resp.Status, b, err)
				}
			}
		}
	}
}
