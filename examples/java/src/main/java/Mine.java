import io.github.cbench.v1.ProcessRequest;
import io.github.cbench.v1.ProcessResponse;
import io.github.cbench.v1.SystemDescribeRequest;
import io.github.cbench.v1.SystemDescribeResponse;
import io.github.cbench.v1.SystemGrpc;
import io.github.cbench.v1.SystemInfo;
import io.github.cbench.v1.Value;
import io.grpc.Server;
import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.StreamObserver;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** A system that keeps the sentences which share a word with the question. */
public final class Mine extends SystemGrpc.SystemImplBase {
  private static final String NAME = "mine";

  @Override
  public void describe(
      SystemDescribeRequest request, StreamObserver<SystemDescribeResponse> answer) {
    SystemInfo mine = SystemInfo.newBuilder().setName(NAME).setVersion("1").build();
    answer.onNext(SystemDescribeResponse.newBuilder().addSystems(mine).build());
    answer.onCompleted();
  }

  @Override
  public void process(ProcessRequest request, StreamObserver<ProcessResponse> answer) {
    if (!request.getSystem().isEmpty() && !request.getSystem().equals(NAME)) {
      String text = "no system \"" + request.getSystem() + "\". There is: " + NAME;
      answer.onError(Status.NOT_FOUND.withDescription(text).asRuntimeException());
      return;
    }
    Map<String, Value> fields = request.getExample().getFieldsMap();
    String kept = kept(text(fields, "context"), text(fields, "question"));
    answer.onNext(
        ProcessResponse.newBuilder()
            .putFields("context", Value.newBuilder().setStringValue(kept).build())
            .addAllCarriedFields(fields.keySet().stream().filter(f -> !f.equals("context")).toList())
            .build());
    answer.onCompleted();
  }

  private static String kept(String context, String question) {
    StringBuilder kept = new StringBuilder();
    for (String sentence : context.split("(?<=\\. )")) {
      for (String word : question.split("\\s+")) {
        String bare = word.replaceAll("^[?,.]+|[?,.]+$", "");
        if (word.length() > 3 && sentence.contains(bare)) {
          kept.append(sentence);
          break;
        }
      }
    }
    return kept.toString();
  }

  private static String text(Map<String, Value> fields, String name) {
    return fields.getOrDefault(name, Value.getDefaultInstance()).getStringValue();
  }

  public static void main(String[] arguments) throws Exception {
    InetAddress here = InetAddress.getLoopbackAddress();
    Server server =
        NettyServerBuilder.forAddress(new InetSocketAddress(here, 0))
            .maxInboundMessageSize(128 << 20)
            .addService(new Mine())
            .build()
            .start();
    Runtime.getRuntime().addShutdownHook(new Thread(() -> finish(server)));
    System.out.println("cbench|1|tcp|127.0.0.1:" + server.getPort());
    server.awaitTermination();
  }

  /** At SIGTERM: no new calls, and those under way have four seconds. */
  private static void finish(Server server) {
    try {
      server.shutdown().awaitTermination(4, TimeUnit.SECONDS);
    } catch (InterruptedException gone) {
      Thread.currentThread().interrupt();
    }
  }
}
