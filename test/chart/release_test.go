// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/cluster"
	"sandpit.dev/internal/cluster/clustertest"
	"sandpit.dev/test/mcp/taskstest"
	"sandpit.dev/test/servertest"
)

// tools is the image of sandboxes.
const tools = cluster.Registry + "/tools:1"

// release is the chart as it is installed.
type release struct {
	t      *testing.T
	c      *cluster.Cluster
	name   string
	space  string // of the server
	boxes  string // of the sandboxes
	values string // path of the file with values
}

// newRelease prepares a cluster as an operator does: a registry with images, a disk for the server, a namespace of the strictest level.
func newRelease(t *testing.T) *release {
	t.Helper()
	c := clustertest.Get(t)
	servertest.Sources(t)
	r := &release{t: t, c: c, name: "sandpit", space: clustertest.Space(t, c), values: filepath.Join(t.TempDir(), "values.yaml")}
	r.boxes = r.space + "-boxes"
	clustertest.Kubectl(t, c, "label", "namespace", r.space, "pod-security.kubernetes.io/enforce=restricted")
	serveRegistry(t)
	loadServer(t, c)
	pushTools(t)
	r.disk()
	err := os.WriteFile(r.values, fmt.Appendf(nil, `
registry: %[1]s/sandpit
registries: [{name: "%[1]s", private: true, plain_http: true}]
defaultImage: %[2]s
sandboxes: {namespace: %[3]s, createNamespace: true, overcommit: 100}
persistence: {storageClass: %[4]s, size: 5Gi}
config: {network: {allow_private: [%[5]s/32]}}
`, cluster.Registry, tools, r.boxes, r.space, cluster.Address), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // when the release goes they stay
		policy := r.space + "-" + r.name
		if out, err := c.Kubectl(context.Background(), "delete", "--wait=false", "--ignore-not-found",
			"namespace/"+r.boxes, "validatingadmissionpolicybinding/"+policy, "validatingadmissionpolicy/"+policy).CombinedOutput(); err != nil {
			t.Errorf("delete what stays: %v\n%s", err, out)
		}
	})
	return r
}

func serveRegistry(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", cluster.Registry)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0))), ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(l) // until it is closed
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-ended
	})
}

// loadServer makes the server's image of these sources, and gives it to the node.
func loadServer(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	dir := t.TempDir()
	program, err := servertest.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(dir, "server.tar")
	cmd := exec.Command("go", "run", "./deploy/serverimage", "-program", program, "-version", "v0.0.0-test", "-name", cluster.Registry+"/sandpit/server:latest", "-o", archive)
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make the server's image: %v\n%s", err, out)
	}
	if out, err := c.Command(t.Context(), "ctr", "-n", "k8s.io", "images", "import", "--digests=false", archive).CombinedOutput(); err != nil {
		t.Fatalf("give it to the node: %v\n%s", err, out)
	}
}

// pushTools puts a small image into the registry, with Python in it.
func pushTools(t *testing.T) {
	t.Helper()
	root := imagetest.Python(t).Root
	files := map[string][]byte{}
	err := filepath.WalkDir(filepath.Join(root, "usr/lib/python3.11"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), "config-") || d.Name() == "dist-packages" || d.Name() == "__pycache__" || d.Name() == "test"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		b, err := os.ReadFile(path)
		files[path[len(root)+1:]] = b
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	layer, err := io.ReadAll(imagetest.Small(t, []string{root}, files, "bash", "sh", "python3", "cat", "echo", "expr", "head", "hostname", "id", "ls", "mkdir", "rm", "sed", "seq", "sleep", "stat", "wc"))
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), static.NewLayer(layer, types.OCIUncompressedLayer))
	if err != nil {
		t.Fatal(err)
	}
	file, err := img.ConfigFile()
	if err == nil {
		file = file.DeepCopy()
		file.Architecture, file.OS = "amd64", "linux"
		img, err = mutate.ConfigFile(img, file)
	}
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.NewTag(tools, name.Insecure)
	if err == nil {
		err = remote.Write(ref, img, remote.WithContext(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// disk makes a volume as a driver of disks does for a pod with a group of its own: the test's provisioner makes directories that only root may write to.
func (r *release) disk() {
	r.t.Helper()
	dir := "/tmp/hostpath_pv/" + r.space
	if out, err := r.c.Command(r.t.Context(), "bash", "-c", "mkdir -m 2775 "+dir+" && chgrp 65532 "+dir).CombinedOutput(); err != nil {
		r.t.Fatalf("make a disk: %v\n%s", err, out)
	}
	clustertest.Apply(r.t, r.c, fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  capacity: {storage: 5Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: %[1]s
  hostPath: {path: %[2]s}
`, r.space, dir))
	r.t.Cleanup(func() {
		if out, err := r.c.Kubectl(context.Background(), "delete", "persistentvolume", r.space, "--wait=false").CombinedOutput(); err != nil {
			r.t.Errorf("delete a disk: %v\n%s", err, out)
		}
	})
}

// helm runs Helm in the release's namespace, and returns what it says.
func (r *release) helm(args ...string) string {
	r.t.Helper()
	cmd := helm(r.t, append(args, "--namespace", r.space, "--kubeconfig", r.c.Kubeconfig)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("helm %s: %v\n%s\n%s", strings.Join(args, " "), err, out, r.state())
	}
	return string(out)
}

// state is what the cluster says of the release, where something went wrong.
func (r *release) state() string {
	var b bytes.Buffer
	for _, args := range [][]string{
		{"-n", r.space, "get", "pods,pvc", "-o", "wide"}, {"-n", r.boxes, "get", "pods,pvc", "-o", "wide"}, {"-n", r.space, "get", "events"}, {"-n", r.boxes, "get", "events"},
		{"-n", r.space, "get", "endpointslices", "-o", "wide"}, {"-n", r.space, "logs", "deploy/" + r.name, "--tail=40"}, {"-n", r.space, "logs", "deploy/" + r.name, "--tail=40", "--previous"},
	} {
		out, err := r.c.Kubectl(context.Background(), args...).CombinedOutput()
		fmt.Fprintf(&b, "kubectl %s: %v\n%s\n", strings.Join(args, " "), err, out)
	}
	return b.String()
}

// in is the release in a part of its test.
func (r *release) in(t *testing.T) *release {
	part := *r
	part.t = t
	return &part
}

// upgrade installs the chart, or what changed, and waits until the server is ready.
func (r *release) upgrade(more ...string) string {
	r.t.Helper()
	return r.helm(append([]string{"upgrade", "--install", r.name, chart, "--values", r.values, "--wait", "--timeout", "2m"}, more...)...)
}

// kubectl runs kubectl, and returns what it prints.
func (r *release) kubectl(args ...string) string {
	r.t.Helper()
	var said bytes.Buffer
	cmd := r.c.Kubectl(r.t.Context(), args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("kubectl %s: %v\n%s%s\n%s", strings.Join(args, " "), err, out, said.String(), r.state())
	}
	return strings.TrimSpace(string(out))
}

// sandpit runs a command of the CLI's in the server's pod.
func (r *release) sandpit(args ...string) string {
	r.t.Helper()
	return r.kubectl(append([]string{"-n", r.space, "exec", "deploy/" + r.name, "--", "sandpit"}, args...)...)
}

// readyBound is how long a server may take to answer through its service: far more than it takes.
const readyBound = time.Minute

// client leads all names to the server's service, by its address, once the service leads to a server that is ready.
func (r *release) client() *http.Client {
	r.t.Helper()
	address := net.JoinHostPort(r.kubectl("-n", r.space, "get", "service", r.name, "-o", "jsonpath={.spec.clusterIP}"), "80")
	t := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, address) // it was led to a pod that is gone
	}}
	r.t.Cleanup(t.CloseIdleConnections)
	c := &http.Client{Transport: t}
	for end := time.Now().Add(readyBound); ; <-time.After(50 * time.Millisecond) {
		answer, err := c.Get("http://localhost/readyz")
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return c
			}
			err = fmt.Errorf("it says %s", answer.Status)
		}
		if time.Now().After(end) {
			r.t.Fatalf("through its service the server is not ready: %v\n%s", err, r.state())
		}
	}
}

// bearer puts a token on requests.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(q *http.Request) (*http.Response, error) {
	q = q.Clone(q.Context())
	q.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(q)
}

// agent opens a session of MCP's through the service.
func (r *release) agent(token string) taskstest.Options {
	r.t.Helper()
	browser := r.client()
	transport := &sdk.StreamableClientTransport{Endpoint: "http://" + r.name + "." + r.space + ".svc/mcp", HTTPClient: &http.Client{Transport: bearer{token, browser.Transport}}}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(r.t.Context(), transport, nil)
	if err != nil {
		r.t.Fatalf("connect: %v\n%s", err, r.state())
	}
	r.t.Cleanup(func() { _ = session.Close() }) // its server may have gone
	return taskstest.Options{Browser: browser, Call: func(ctx context.Context, tool string, with map[string]any) (taskstest.Answer, error) {
		said, err := session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: with})
		if err != nil {
			return taskstest.Answer{}, err
		}
		a := taskstest.Answer{IsError: said.IsError}
		for _, part := range said.Content {
			switch part := part.(type) {
			case *sdk.TextContent:
				a.Text += part.Text + "\n"
			case *sdk.ImageContent:
				a.Images++
			}
		}
		return a, nil
	}}
}
