// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/sandbox"
)

// ordinary are bodies with no value in them.
func ordinary() map[string]string {
	random := make([]byte, 24<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	return map[string]string{
		"text":   strings.Repeat("a line of text that is like many others, with \"quotes\" and 100%\n", 1<<9),
		"json":   strings.Repeat(`{"id": 4711, "text": "a \"quoted\" \u00e9\n line", "url": "https:\/\/h.example\/?a=b&c=%20d"},`, 350),
		"html":   strings.Repeat(`<p class="a">one &amp; two &#39;three&#39; <a href="/x?y=1&amp;z=2">four</a></p>`, 400),
		"base64": base64.StdEncoding.EncodeToString(random),
		"hex":    hex.EncodeToString(random),
		"binary": string(random),
		"zeros":  strings.Repeat("\x00", 32<<10),
	}
}

// hostile are bodies that are much work to look through, for one or the other value.
func hostile(value string) map[string]string {
	all := map[string]string{
		"backslashes": `\`, "percent": "%", "percents": "%25", "ampersands": "&", "entities": "&amp;", "equals": "=", "breaks": "=\r\n", "pluses": "+", "newlines": "\n",
		"escaped newlines": `\n`, "percent newlines": "%0a", "half escapes": `%2\u00&#x=\x`, "octal": `\060`, "commas": "0,", "zeros": "0", "NULs": "%\x00", "unicode": `\u{`,
		"first":     value[:1],
		"all first": "s5%3d\\u0043&#99;",
	}
	half := value[:(len(value)-1)/2]
	all["near"] = value[:len(value)*2/5] + "~"
	for _, gap := range []string{"\n", `\n`, "%0a", "&#10;", "=\r\n"} {
		all["gaps "+gap] = strings.Join(strings.Split(half, ""), gap)
	}
	for how, s := range chosen(value) {
		all[how] = s.Text
		all["most of half of "+how] = s.Text[:len(s.Text)/2-1]
	}
	return all
}

// hostileValues are short and long, of one character, periodic, and ones that take long to compare.
func hostileValues() map[string]string {
	fibonacci, before := "ab", "a"
	for len(fibonacci) < 1000 {
		fibonacci, before = fibonacci+before, fibonacci
	}
	return map[string]string{
		"plain":       value,
		"a":           strings.Repeat("a", 1000),
		"long":        strings.Repeat("a", sandbox.MaxBoundValue),
		"backslashes": strings.Repeat(`\`, 1000),
		"percent":     strings.Repeat("%25", 300),
		"fibonacci":   fibonacci[:1000],
		"escapes":     strings.Repeat(`\u005c&#38;%41`, 60),
		"spaces":      strings.Repeat("a ", 100),
		"zeros":       strings.Repeat("0", 900) + "1",
	}
}

// cpu returns the processor time that this process took.
func cpu(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkDeep looks through bodies for values that are not there.
func BenchmarkDeep(b *testing.B) {
	run := func(v *Set, name, text string) {
		b.Run(name, func(b *testing.B) {
			m := v.Stream()
			body := []byte(strings.Repeat(text, readSize/len(text)+1))
			m.Push(body)
			b.SetBytes(int64(len(body)))
			b.ResetTimer()
			began := cpu(b)
			for range b.N {
				m.Push(body)
			}
			b.ReportMetric(float64(b.N)*float64(len(body))/1e6/(cpu(b)-began).Seconds(), "MB/cpu-s")
		})
	}
	for _, n := range []int{1, 2, 20} {
		values := []string{value, "another value of a secret"}[:min(n, 2)]
		for k := range n - len(values) {
			values = append(values, fmt.Sprintf("%x-%s", rand.NewPCG(uint64(k), 1).Uint64(), base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%d", k*k*k))))
		}
		v := New(values)
		for what, text := range ordinary() {
			run(v, fmt.Sprintf("%d/%s", n, what), text)
		}
	}
	for which, value := range hostileValues() {
		v := New([]string{value})
		texts := hostile(value)
		names := make([]string, 0, len(texts))
		for name := range texts {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			run(v, "hostile/"+which+"/"+strings.Trim(fmt.Sprintf("%q", strings.ReplaceAll(name, " ", "_")), `"`), texts[name])
		}
	}
}
