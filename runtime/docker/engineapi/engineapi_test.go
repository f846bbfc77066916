// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engineapi_test

import (
	"archive/tar"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/internal/dockerd/dockerdtest"
	"sandpit.dev/runtime/docker/engineapi"
)

func find(t *testing.T, env engineapi.Environment) *engineapi.Client {
	t.Helper()
	c, err := engineapi.Find(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, what string, err error, want fault.Code) {
	t.Helper()
	if got := fault.Of(err); got != want {
		t.Errorf("%s: got %v (%s), want %s", what, err, got, want)
	}
}

// archive is a tar archive of files.
func archive(t *testing.T, files map[string]string) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		check(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name]))}))
		must[int](t)(w.Write([]byte(files[name])))
	}
	check(t, w.Close())
	return &b
}

func TestARealEngine(t *testing.T) {
	h := dockerdtest.New(t)
	ctx := t.Context()
	c := find(t, engineapi.Environment{Host: "unix://" + h.Socket()})

	info := must[engineapi.Info](t)(c.Info(ctx))
	if info.OSType != "linux" || info.Driver != "overlay2" || !c.Host().Local() || c.APIVersion() != engineapi.Oldest {
		t.Errorf("it is %+v, and speaks %v", info, c.APIVersion())
	}
	// An image of an archive: what it lacks is not there.
	_, err := c.InspectImage(ctx, "sandpit.test/none:1")
	wantCode(t, "an image that is missing", err, fault.NotFound)
	layer := archive(t, map[string]string{"file": "of the image"})
	const name = "sandpit.test/image:1"
	check(t, c.LoadImage(ctx, image(t, name, layer.Bytes())))
	img := must[engineapi.Image](t)(c.InspectImage(ctx, name))
	if !slices.Equal(img.RepoTags, []string{name}) || img.OS != "linux" {
		t.Errorf("the image is %+v", img)
	}
	if err := c.PullImage(ctx, "sandpit.invalid/no/such:1", nil); err == nil {
		t.Error("a registry that does not exist gave an image")
	}

	events := must[*engineapi.Events](t)(c.Events(ctx, time.Time{}, []string{"create", "destroy"}, "dev.sandpit.test=a"))
	defer events.Close()
	make := func(name, label string) (string, error) {
		return c.CreateContainer(ctx, engineapi.Container{
			Name:   name,
			Config: engineapi.Config{Image: img.ID, Cmd: []string{"/none"}, Labels: map[string]string{"dev.sandpit.test": label}},
			Host:   engineapi.HostConfig{NetworkMode: "none", CapDrop: []string{"ALL"}, Resources: engineapi.Resources{Memory: 64 << 20, MemorySwap: 64 << 20}},
		})
	}
	other := must[string](t)(make("other", "b"))
	id := must[string](t)(make("one", "a"))
	_, err = make("one", "a")
	wantCode(t, "a name that is taken", err, fault.Conflict)
	e := must[engineapi.Event](t)(events.Next())
	if e.Action != "create" || e.Actor.ID != id || e.Actor.Attributes["dev.sandpit.test"] != "a" {
		t.Errorf("the first event is %+v, want that %s was made, and nothing of %s", e, id, other)
	}
	list := must[[]engineapi.Listed](t)(c.ListContainers(ctx, "dev.sandpit.test=a"))
	if len(list) != 1 || list[0].ID != id || list[0].State != "created" {
		t.Errorf("listed are %+v, want %s alone", list, id)
	}
	check(t, c.PutArchive(ctx, id, "/", archive(t, map[string]string{"more": "put there"})))
	wantCode(t, "an archive that is none", c.PutArchive(ctx, id, "/", bytes.NewReader([]byte("no archive, but long enough to be looked at"))), fault.Unavailable)
	wantCode(t, "a program that is none", c.StartContainer(ctx, id), fault.Invalid)
	wantCode(t, "to kill what does not run", c.KillContainer(ctx, id), fault.Conflict)
	check(t, c.StopContainer(ctx, id, 0))
	check(t, c.UpdateContainer(ctx, id, engineapi.Resources{Memory: 32 << 20, MemorySwap: 32 << 20}))
	in := must[engineapi.Inspected](t)(c.InspectContainer(ctx, id))
	if in.HostConfig.Memory != 32<<20 || in.State.Running || in.Image != img.ID || in.HostConfig.NetworkMode != "none" {
		t.Errorf("the container is %+v", in)
	}
	check(t, c.RemoveContainer(ctx, id))
	check(t, c.RemoveContainer(ctx, other))
	if e := must[engineapi.Event](t)(events.Next()); e.Action != "destroy" || e.Actor.ID != id {
		t.Errorf("the next event is %+v, want that it was removed", e)
	}
	wantCode(t, "to remove what is gone", c.RemoveContainer(ctx, id), fault.NotFound)

	must[engineapi.Volume](t)(c.CreateVolume(ctx, "volume", map[string]string{"dev.sandpit.test": "v"}))
	if v := must[engineapi.Volume](t)(c.InspectVolume(ctx, "volume")); v.Labels["dev.sandpit.test"] != "v" {
		t.Errorf("the volume is %+v", v)
	}
	if l := must[[]engineapi.Volume](t)(c.ListVolumes(ctx, "dev.sandpit.test=v")); len(l) != 1 || l[0].Name != "volume" {
		t.Errorf("volumes are %+v", l)
	}
	check(t, c.RemoveVolume(ctx, "volume"))
	_, err = c.InspectVolume(ctx, "volume")
	wantCode(t, "a volume that is gone", err, fault.NotFound)
	check(t, c.RemoveImage(ctx, name))

	// An Engine that ends ends what listens to it, and is not there then; it is there again when it starts.
	h.Stop()
	if _, err := events.Next(); err == nil {
		t.Error("there was an event of an Engine that had ended")
	}
	_, err = c.Info(ctx)
	wantCode(t, "an Engine that ended", err, fault.Unavailable)
	h.Start()
	must[engineapi.Info](t)(c.Info(ctx))
}

// A name that leads elsewhere in the API leads nowhere.
func TestNamesAreNoPaths(t *testing.T) {
	h := dockerdtest.New(t)
	c := find(t, engineapi.Environment{Host: "unix://" + h.Socket()})
	for _, ref := range []string{"../containers", "x/../../info?", "x/../../volumes", "%2e%2e/info", "a b", "\x00", "x#y"} {
		if img, err := c.InspectImage(t.Context(), ref); err == nil {
			t.Errorf("the image %q is %+v", ref, img)
		}
		if in, err := c.InspectContainer(t.Context(), ref); err == nil {
			t.Errorf("the container %q is %+v", ref, in)
		}
		if v, err := c.InspectVolume(t.Context(), ref); err == nil {
			t.Errorf("the volume %q is %+v", ref, v)
		}
	}
}

// image is an archive of docker save with one layer.
func image(t *testing.T, name string, layer []byte) io.Reader {
	t.Helper()
	return archive(t, map[string]string{
		"manifest.json": `[{"Config":"config.json","RepoTags":["` + name + `"],"Layers":["layer.tar"]}]`,
		"config.json":   `{"architecture":"amd64","os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":["` + fmt.Sprintf("sha256:%x", sha256.Sum256(layer)) + `"]}}`,
		"layer.tar":     string(layer),
	})
}

// An Engine behind TLS is used by who has the right certificates, and by nobody else.
func TestTLS(t *testing.T) {
	h := dockerdtest.New(t)
	authority, other := newAuthority(t), newAuthority(t)
	server := authority.sign(t, "127.0.0.1")
	config := &tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority.pool()}
	l := must[net.Listener](t)(tls.Listen("tcp", "127.0.0.1:0", config))
	t.Cleanup(func() { _ = l.Close() })
	go forward(l, h.Socket())

	dir := func(ca *authorityOf, own *authorityOf) string {
		d := t.TempDir()
		check(t, os.WriteFile(filepath.Join(d, "ca.pem"), ca.pem, 0o600))
		if own != nil {
			own.write(t, d)
		}
		return d
	}
	env := engineapi.Environment{Host: "tcp://" + l.Addr().String()}
	env.CertPath = dir(authority, authority)
	must[engineapi.Info](t)(find(t, env).Info(t.Context()))

	for name, path := range map[string]string{
		"AnotherAuthority": dir(other, authority), "NoCertificateOfOurs": dir(authority, nil), "ACertificateOfAnother": dir(authority, other),
	} {
		t.Run(name, func(t *testing.T) {
			env.CertPath = path
			_, err := engineapi.Find(t.Context(), env)
			wantCode(t, "it", err, fault.Denied)
		})
	}
	t.Run("WithoutTLS", func(t *testing.T) {
		_, err := engineapi.Find(t.Context(), engineapi.Environment{Host: env.Host})
		wantCode(t, "it", err, fault.Unavailable)
	})
	t.Run("AskedForButNotThere", func(t *testing.T) {
		_, err := engineapi.Find(t.Context(), engineapi.Environment{Host: env.Host, TLSVerify: "1", Home: t.TempDir()})
		wantCode(t, "it", err, fault.Invalid)
	})
}

func forward(l net.Listener, socket string) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = in.Close() }()
			out, err := net.Dial("unix", socket)
			if err != nil {
				return
			}
			defer func() { _ = out.Close() }()
			go func() {
				if _, err := io.Copy(out, in); err != nil {
					_ = out.Close() // who called broke off, or never began as it should
				}
			}()
			_, _ = io.Copy(in, out)
		}()
	}
}

type authorityOf struct {
	pem  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authorityOf {
	key := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key))
	return &authorityOf{
		pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), cert: must[*x509.Certificate](t)(x509.ParseCertificate(der)), key: key,
	}
}

func (a *authorityOf) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

func (a *authorityOf) pair(t *testing.T, host string) (cert, key []byte) {
	own := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	c := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.ParseIP(host)}}
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, c, a.cert, &own.PublicKey, a.key))
	b := must[[]byte](t)(x509.MarshalPKCS8PrivateKey(own))
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b})
}

func (a *authorityOf) sign(t *testing.T, host string) tls.Certificate {
	return must[tls.Certificate](t)(tls.X509KeyPair(a.pair(t, host)))
}

func (a *authorityOf) write(t *testing.T, dir string) {
	cert, key := a.pair(t, "127.0.0.1")
	check(t, os.WriteFile(filepath.Join(dir, "cert.pem"), cert, 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "key.pem"), key, 0o600))
}
