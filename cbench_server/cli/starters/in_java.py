"""A system in Java, with its standard library."""

from cbench_server.cli.starters.starter import Starter

_SYSTEM = r"""// A system: keep the sentences that share a word with the question.
// A request per line comes in, an answer per line goes out; stderr is for people.
// Texts stay as JSON writes them, so no library is needed to read them.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class Mine {
  static Matcher text(String line, String key) {
    return Pattern.compile('"' + key + "\"\\s*:\\s*\"((?:[^\"\\\\]++|\\\\.)*+)\"").matcher(line);
  }

  static String process(String line) {
    Matcher context = text(line, "context");
    if (!context.find()) {
      return line;
    }
    Matcher question = text(line, "question");
    String[] asked = question.find() ? question.group(1).split("\\s+") : new String[0];
    StringBuilder kept = new StringBuilder();
    for (String sentence : context.group(1).split("(?<=\\. )")) {
      for (String word : asked) {
        String bare = word.replaceAll("[?,.]", "");
        if (bare.length() > 3 && sentence.contains(bare)) {
          kept.append(sentence);
          break;
        }
      }
    }
    return line.substring(0, context.start(1)) + kept + line.substring(context.end(1));
  }

  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      out.println(process(line));
    }
  }
}
"""
_TEST = """\
// Run with: javac Mine.java MineTest.java && java -cp . MineTest
public class MineTest {
  public static void main(String[] arguments) {
    String line =
        "{\\"id\\": \\"1\\", \\"example\\": {\\"context\\": \\"Tea is hot. The bridge is old.\\","
            + " \\"question\\": \\"Is the bridge old?\\"}}";
    String expected = line.replace("Tea is hot. ", "");
    if (!Mine.process(line).equals(expected)) {
      throw new AssertionError(Mine.process(line));
    }
    System.out.println("good");
  }
}
"""

STARTER = Starter(
    files={"Mine.java": _SYSTEM, "MineTest.java": _TEST},
    command="java -cp . Mine",
    test="javac Mine.java MineTest.java && java -cp . MineTest",
    build="javac Mine.java",
    tools=("java", "javac"),
)
