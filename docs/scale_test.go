package docs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// job is the part of a Kubernetes Job that ours uses. A field that is not here is a mistake.
type job struct {
	APIVersion string `json:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		CompletionMode           string
		Completions, Parallelism int
		BackoffLimitPerIndex     int
		PodFailurePolicy         struct {
			Rules []struct {
				Action      string
				OnExitCodes struct {
					ContainerName, Operator string
					Values                  []int
				}
			}
		}
		Template struct{ Spec pod }
	}
}

type pod struct {
	RestartPolicy string
	Containers    []struct {
		Name, Image, ImagePullPolicy, WorkingDir string
		Command                                  []string
		Resources                                struct{ Requests, Limits struct{ CPU, Memory string } }
		VolumeMounts                             []struct{ Name, MountPath string }
	}
	Volumes []struct {
		Name                  string
		PersistentVolumeClaim struct{ ClaimName string }
	}
}

func readJob(t *testing.T) (j job) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(files(t, ".json")["docs/scale/job.json"]))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&j); err != nil {
		t.Fatal(err)
	}
	return j
}

// The rules that the documentation of Kubernetes gives for such a Job.
func TestTheManifestIsAnIndexedJob(t *testing.T) {
	j := readJob(t)
	s, p := &j.Spec, &j.Spec.Template.Spec
	if j.APIVersion != "batch/v1" || j.Kind != "Job" || j.Metadata.Name == "" || s.CompletionMode != "Indexed" {
		t.Errorf("it is no Indexed Job: %+v", j)
	}
	if s.Completions < 2 || s.Parallelism < 1 || s.Parallelism > s.Completions {
		t.Errorf("%d completions, %d at a time", s.Completions, s.Parallelism)
	}
	if p.RestartPolicy != "Never" || s.BackoffLimitPerIndex < 1 {
		t.Error("podFailurePolicy needs restartPolicy Never, and FailIndex a limit for each index")
	}
	if len(p.Containers) != 1 || len(p.Volumes) != 1 || len(s.PodFailurePolicy.Rules) != 1 {
		t.Fatal("there is one container, one volume and one rule")
	}
	c, v, r := &p.Containers[0], &p.Volumes[0], &s.PodFailurePolicy.Rules[0]
	if r.Action != "FailIndex" || r.OnExitCodes.Operator != "In" || r.OnExitCodes.ContainerName != c.Name ||
		fmt.Sprint(r.OnExitCodes.Values) != "[1 2]" {
		t.Errorf("what ends an index for good is %+v", r)
	}
	if len(c.VolumeMounts) != 1 || c.VolumeMounts[0].Name != v.Name || c.VolumeMounts[0].MountPath != c.WorkingDir {
		t.Errorf("the results go to %+v, and the program works in %s", c.VolumeMounts, c.WorkingDir)
	}
}

// kubectl reads the manifest into the types of Kubernetes, and writes what those have a place for.
func TestKubectlLosesNothingOfTheManifest(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("there is no kubectl here")
	}
	read := exec.Command(kubectl, "set", "env", "--local", "-f", "scale/job.json", "CHECKED=yes", "-o", "json")
	out, err := read.Output()
	if err != nil {
		t.Fatalf("%v: %v", read.Args, err)
	}
	var mine, theirs any
	if err := json.Unmarshal([]byte(files(t, ".json")["docs/scale/job.json"]), &mine); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &theirs); err != nil || !bytes.Contains(out, []byte("CHECKED")) {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, path := range lost("", mine, theirs) {
		t.Errorf("%s: Kubernetes has no such field, or another value there", path)
	}
	if got := lost("", map[string]any{"spec": map[string]any{"bogus": 1}}, theirs); len(got) != 1 {
		t.Errorf("a field that there is not is lost as %q", got)
	}
}

// lost lists where a value is not the same in another one, or not there.
func lost(path string, mine, theirs any) (paths []string) {
	switch m := mine.(type) {
	case map[string]any:
		other, _ := theirs.(map[string]any)
		for key, value := range m {
			paths = append(paths, lost(path+"."+key, value, other[key])...)
		}
	case []any:
		other, _ := theirs.([]any)
		for i, value := range m {
			var at any
			if i < len(other) {
				at = other[i]
			}
			paths = append(paths, lost(path+"."+strconv.Itoa(i), value, at)...)
		}
	default:
		if mine != theirs {
			paths = append(paths, path)
		}
	}
	return paths
}

// scaled is a place to search in: few seeds, and raftsim in the path.
type scaled struct {
	t    *testing.T
	dir  string
	path string
}

func newScaled(t *testing.T) *scaled {
	t.Helper()
	s := &scaled{t, t.TempDir(), t.TempDir()}
	if out, err := exec.Command("go", "build", "-o", s.path, "../cmd/raftsim").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := exec.LookPath("parallel"); err != nil {
		loop := "#!/bin/sh\nset -eu\n[ \"$1 $2\" = '--jobs 1' ]\nshift 2\n" +
			"while read -r i; do sh -c \"$(printf '%s ' \"$@\" | sed \"s/{}/$i/g\")\"; done\n"
		if err := os.WriteFile(filepath.Join(s.path, "parallel"), []byte(loop), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// run gives a command to a shell, with a hundred seeds of mild faults in place of a million.
func (s *scaled) run(command string, env ...string) {
	s.t.Helper()
	small := strings.NewReplacer("1-1000000", "1-100", "-faults harsh", "-faults mild", "-require-all ", "")
	few := small.Replace(command)
	if strings.Contains(command, "explore") && !strings.Contains(few, "-seeds 1-100 -faults mild") {
		s.t.Fatalf("this is no search of a million seeds:\n%s", command)
	}
	cmd := exec.Command("sh", "-c", few)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), append(env, "PATH="+s.path+":"+os.Getenv("PATH"))...)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v\n%s\n%s", err, few, out)
	}
}

// merged requires that what was searched is the whole.
func (s *scaled) merged(files string) {
	s.t.Helper()
	s.run("raftsim merge " + files + " >merged")
	out, err := os.ReadFile(filepath.Join(s.dir, "merged"))
	if err != nil || !bytes.Contains(out, []byte("seeds 1-100, faults mild, 64 shards: 100 runs")) {
		s.t.Errorf("%v\n%s", err, out)
	}
}

func TestTheScriptForParallelSearchesTheWhole(t *testing.T) {
	s := newScaled(t)
	s.run(files(t, ".sh")["docs/scale/parallel.sh"])
	s.merged("results/*.jsonl")
}

func TestTheSlurmArraySearchesTheWhole(t *testing.T) {
	s, script := newScaled(t), files(t, ".sh")["docs/scale/array.sh"]
	_, array, _ := strings.Cut(script, "#SBATCH --array=1-")
	array, _, _ = strings.Cut(array, "\n")
	n, err := strconv.Atoi(array)
	if err != nil || !strings.Contains(script, "#SBATCH --cpus-per-task=") {
		t.Fatalf("the array is 1-%s", array)
	}
	for i := 1; i <= n; i++ {
		s.run(script, "SLURM_ARRAY_TASK_ID="+strconv.Itoa(i), "SLURM_CPUS_PER_TASK=1")
	}
	s.merged("results/*.jsonl")
}

func TestTheIndexedJobSearchesTheWhole(t *testing.T) {
	s, j := newScaled(t), readJob(t)
	command := j.Spec.Template.Spec.Containers[0].Command
	if len(command) != 3 || command[0] != "/bin/sh" || command[1] != "-c" {
		t.Fatalf("the command is %q", command)
	}
	for i := range j.Spec.Completions {
		s.run(command[2], "JOB_COMPLETION_INDEX="+strconv.Itoa(i))
	}
	s.merged("*.jsonl")
}
