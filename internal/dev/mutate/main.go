// Mutate makes one small change to the root package, or to an internal one, at a time. It
// runs the tests of that package and those of the root package, to find rules that no test
// checks. It negates conditions, removes statements and changes constants. It does not
// change the source files.
//
//	go run ./internal/dev/mutate                       # the files that matter most
//	go run ./internal/dev/mutate -files heads.go -v    # one file, every mutant shown
//	go run ./internal/dev/mutate -sample 5             # every fifth mutant
//
// It prints the mutants that survived and the share that was killed. It exits with 1
// if that share is below -want percent.
//
// It exists because gremlins, a well-maintained mutation tester, does less: it removes
// no statements and does not run slow tests last. Even for one file it measures
// the coverage of the whole module, and it runs every test of the package for
// each mutant.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const defaultFiles = "signature.go,internal/transport/retry.go,eventhandler.go,streaming.go,conversion.go,heads.go,headupdate.go"

func main() {
	files := flag.String("files", defaultFiles, "files to break, separated by commas")
	run := flag.String("run", "", "run only the tests that match")
	sample := flag.Int("sample", 1, "take every nth mutant")
	workers := flag.Int("p", 2, "mutants at a time")
	slow := flag.Duration("slow", 100*time.Millisecond, "run tests slower than this only on mutants that survive all others")
	timeout := flag.Duration("timeout", time.Minute, "limit for the tests of one mutant; one that hangs is killed")
	want := flag.Float64("want", 95, "percentage that must be killed")
	verbose := flag.Bool("v", false, "show every mutant")
	flag.Parse()

	var mutants []mutant
	for _, name := range strings.Split(*files, ",") {
		found, err := mutantsOf(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		mutants = append(mutants, found...)
	}
	var picked []mutant
	for i := 0; i < len(mutants); i += max(*sample, 1) {
		picked = append(picked, mutants[i])
	}
	slowTests, err := testsSlowerThan(*slow, *run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	inside, outside, err := testFiles()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	c := campaign{run: *run, slow: slowTests, inside: inside, outside: outside, timeout: *timeout, verbose: *verbose}
	if err := c.tryUnchanged(strings.Split(*files, ",")[0]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	c.all(picked, *workers)
	score := c.report()
	if score < *want {
		os.Exit(1)
	}
}

// mutant is a file with one change.
type mutant struct {
	file   string
	line   int
	what   string
	source []byte
}

func (m mutant) String() string { return fmt.Sprintf("%s:%d: %s", m.file, m.line, m.what) }

// edit is a change of a syntax tree that can be undone.
type edit struct {
	pos        token.Pos
	what       string
	make, undo func()
}

func mutantsOf(name string) ([]mutant, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, nil, 0)
	if err != nil {
		return nil, err
	}
	var mutants []mutant
	for _, e := range edits(file) {
		e.make()
		var source bytes.Buffer
		err := printer.Fprint(&source, fset, file)
		e.undo()
		if err != nil {
			return nil, err
		}
		mutants = append(mutants, mutant{name, fset.Position(e.pos).Line, e.what, source.Bytes()})
	}
	return mutants, nil
}

// edits returns all edits of a file.
func edits(file *ast.File) []edit {
	var found []edit
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok != token.IMPORT && n.Tok != token.TYPE
		case *ast.BinaryExpr:
			if op, ok := flipped[n.Op]; ok {
				was := n.Op
				found = append(found, edit{n.OpPos, fmt.Sprintf("%s becomes %s", was, op), func() { n.Op = op }, func() { n.Op = was }})
			}
		case *ast.IfStmt:
			cond := n.Cond
			negated := &ast.UnaryExpr{Op: token.NOT, X: &ast.ParenExpr{X: cond}}
			found = append(found, edit{cond.Pos(), "condition negated", func() { n.Cond = negated }, func() { n.Cond = cond }})
		case *ast.BasicLit:
			if changed, ok := otherConstant(n); ok {
				was := n.Value
				found = append(found, edit{n.Pos(), was + " becomes " + changed, func() { n.Value = changed }, func() { n.Value = was }})
			}
		case *ast.Ident:
			if other, ok := map[string]string{"true": "false", "false": "true"}[n.Name]; ok {
				was := n.Name
				found = append(found, edit{n.Pos(), was + " becomes " + other, func() { n.Name = other }, func() { n.Name = was }})
			}
		case *ast.BlockStmt:
			found = append(found, removals(n.List)...)
		case *ast.CaseClause:
			found = append(found, removals(n.Body)...)
		}
		return true
	})
	return found
}

var flipped = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.LEQ, token.LEQ: token.LSS,
	token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD,
	token.SHL: token.SHR, token.SHR: token.SHL,
	token.XOR: token.OR,
}

func otherConstant(lit *ast.BasicLit) (string, bool) {
	if lit.Kind != token.INT {
		return "", false
	}
	n, err := strconv.ParseInt(lit.Value, 0, 64)
	return strconv.FormatInt(n+1, 10), err == nil
}

// removals returns one edit for each statement of a block, which removes it.
// Declarations and returns stay, since the code would not compile without them.
func removals(list []ast.Stmt) []edit {
	var found []edit
	for i, stmt := range list {
		switch s := stmt.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt, *ast.GoStmt:
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		default:
			continue
		}
		found = append(found, edit{stmt.Pos(), "statement removed",
			func() { list[i] = &ast.EmptyStmt{Implicit: true} }, func() { list[i] = stmt }})
	}
	return found
}

// campaign runs the tests over mutants.
type campaign struct {
	run     string
	slow    string   // matches the tests that are run last
	inside  []string // test files of the package itself
	outside []string // test files of the external test package
	timeout time.Duration
	verbose bool

	mu               sync.Mutex
	killed, unusable int
	survivors        []mutant
}

func (c *campaign) all(mutants []mutant, workers int) {
	work := make(chan mutant)
	var done sync.WaitGroup
	for range workers {
		done.Go(func() {
			for m := range work {
				c.try(m)
			}
		})
	}
	for _, m := range mutants {
		work <- m
	}
	close(work)
	done.Wait()
}

// tryUnchanged returns an error if even the file as it is would not survive, since
// the score would mean nothing then.
func (c *campaign) tryUnchanged(name string) error {
	source, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	verdict, err := c.test(mutant{file: name, source: source})
	if err == nil && verdict != "survived" {
		err = fmt.Errorf("%s without a change: %s", name, verdict)
	}
	return err
}

func (c *campaign) try(m mutant) {
	verdict, err := c.test(m)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		verdict = err.Error()
		c.unusable++
	case verdict == "survived":
		c.survivors = append(c.survivors, m)
		fmt.Println("survived:", m)
		return
	case verdict == "killed":
		c.killed++
	default:
		c.unusable++
	}
	if c.verbose {
		fmt.Println(verdict+":", m)
	}
}

// test builds the package with the mutant and runs its tests. It begins with the
// test package that has the file's own test, since building takes most of the time.
func (c *campaign) test(m mutant) (verdict string, err error) {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if filepath.Dir(m.file) != "." {
		if verdict, err := c.testInternal(dir, m); verdict != "survived" || err != nil {
			return verdict, err
		}
	}
	without := [2][]string{c.outside, c.inside}
	if slices.Contains(c.outside, strings.TrimSuffix(m.file, ".go")+"_test.go") {
		without[0], without[1] = without[1], without[0]
	}
	var binaries []string
	for i, left := range without {
		overlay, err := writeOverlay(dir, m, left)
		if err != nil {
			return "", err
		}
		binary := filepath.Join(dir, fmt.Sprintf("mutant%d.test", i))
		if !compiles(overlay, binary, ".") {
			return "does not compile", nil
		}
		if killed, err := c.fails(".", binary, "-test.run", c.run, "-test.skip", c.slow); killed || err != nil {
			return "killed", err
		}
		binaries = append(binaries, binary)
	}
	for _, binary := range binaries {
		if killed, err := c.fails(".", binary, "-test.run", c.slow); killed || err != nil {
			return "killed", err
		}
	}
	return "survived", nil
}

// testInternal runs the tests of the internal package that the mutant is in.
func (c *campaign) testInternal(dir string, m mutant) (verdict string, err error) {
	overlay, err := writeOverlay(dir, m, nil)
	if err != nil {
		return "", err
	}
	folder, binary := filepath.Dir(m.file), filepath.Join(dir, "internal.test")
	if !compiles(overlay, binary, "./"+filepath.ToSlash(folder)) {
		return "does not compile", nil
	}
	if killed, err := c.fails(folder, binary, "-test.run", c.run); killed || err != nil {
		return "killed", err
	}
	return "survived", nil
}

func compiles(overlay, binary, folder string) bool {
	return exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, folder).Run() == nil
}

// limited runs a program with at most 4 GiB of memory.
const limited = `ulimit -v 4194304; exec "$@"`

// fails runs tests in a folder and reports whether one fails, hangs or needs too much memory.
func (c *campaign) fails(folder, binary string, args ...string) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	command := append([]string{"-c", limited, "sh", binary, "-test.failfast"}, args...)
	tests := exec.CommandContext(ctx, "sh", command...)
	tests.Dir = folder
	err := tests.Run()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return true, nil
	}
	return false, err
}

var passed = regexp.MustCompile(`(?m)^--- PASS: (\w+) \((.+)s\)$`)

// testsSlowerThan runs the tests without a mutant and returns a pattern that matches
// the slower ones.
func testsSlowerThan(limit time.Duration, run string) (pattern string, err error) {
	out, err := exec.Command("go", "test", "-count=1", "-v", "-run", run, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("the tests fail before anything is broken: %w\n%s", err, out)
	}
	names := []string{"no test is slow"}
	for _, m := range passed.FindAllStringSubmatch(string(out), -1) {
		if seconds, err := strconv.ParseFloat(m[2], 64); err == nil && seconds > limit.Seconds() {
			names = append(names, m[1])
		}
	}
	return "^(" + strings.Join(names, "|") + ")$", nil
}

// helpers is the test file that both test packages use.
const helpers = "harness_test.go"

// testFiles returns the test files of the package and of the external test package,
// without the helpers.
func testFiles() (inside, outside []string, err error) {
	out, err := exec.Command("go", "list", "-f", `{{join .TestGoFiles " "}}|{{join .XTestGoFiles " "}}`, ".").Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list: %w", err)
	}
	in, beside, _ := strings.Cut(string(out), "|")
	inside = slices.DeleteFunc(strings.Fields(in), func(name string) bool { return name == helpers })
	return inside, strings.Fields(beside), nil
}

// writeOverlay writes a file that tells the go command to read the mutant in place
// of the source file, and to ignore some other files.
func writeOverlay(dir string, m mutant, without []string) (string, error) {
	replaced := filepath.Join(dir, "mutant.go")
	if err := os.WriteFile(replaced, m.source, 0o600); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for _, name := range without {
		replace[name] = ""
	}
	replace[m.file] = replaced
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, overlay, 0o600)
}

func (c *campaign) report() (score float64) {
	total := c.killed + len(c.survivors)
	if total > 0 {
		score = 100 * float64(c.killed) / float64(total)
	}
	fmt.Printf("%d mutants: %d killed, %d survived, %d did not compile: %.1f %% killed\n",
		total+c.unusable, c.killed, len(c.survivors), c.unusable, score)
	return score
}
