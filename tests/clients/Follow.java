// Load by AWS' client, which follows an endpoint and then the servers, until standard input ends; each line is a failure.
import java.net.InetSocketAddress;
import java.util.List;
import net.spy.memcached.ClientMode;
import net.spy.memcached.DefaultConnectionFactory;
import net.spy.memcached.MemcachedClient;

public class Follow {
  public static void main(String[] arguments) throws Exception {
    int colon = arguments[0].lastIndexOf(':');
    var endpoint = new InetSocketAddress(
        arguments[0].substring(0, colon), Integer.parseInt(arguments[0].substring(colon + 1)));
    var factory = new DefaultConnectionFactory(ClientMode.Dynamic) {
      @Override public long getDynamicModePollingInterval() { return 1000; }
      @Override public long getOperationTimeout() { return 5_000; }
    };
    var client = new MemcachedClient(factory, List.of(endpoint));
    while (System.in.available() == 0) {
      for (int number = 0; number < 100; number++) {
        try {
          client.set("key-" + number, 3600, "value").get();
          client.get("key-" + number);
        } catch (Exception error) {
          System.out.println(error);
        }
      }
      Thread.sleep(20);
    }
    client.shutdown();
  }
}
